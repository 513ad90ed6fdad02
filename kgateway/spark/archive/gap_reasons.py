"""
Records why offsets are missing from a log, while it is read.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from kgateway.records.batch import BatchHeader
from kgateway.spark.logs.interface import AbortedTransactions, Logs, OffsetGone, Window
from kgateway.spark.logs.offset_range import OffsetRange

Span = tuple[int, int]  # the first and the last offset


@dataclass
class GapReasons:
    """
    What was met in place of records.
    """

    markers: list[Span] = field(default_factory=list)
    aborted: list[Span] = field(default_factory=list)
    gone: OffsetGone | None = None  # why reading has ended


def watched_windows(logs: Logs, seen: GapReasons, wanted: OffsetRange) -> Iterator[Window]:
    """
    The windows of a log; what is met in place of records is noted in `seen`.
    """
    try:
        for window in logs.windows(wanted):
            yield window._replace(aborted=_WatchedTransactions(window.aborted, seen))
    except OffsetGone as gone:
        seen.gone = gone
        raise


class _WatchedTransactions(AbortedTransactions):
    """
    Notes batches whose records are skipped.
    """

    def __init__(self, aborted: AbortedTransactions, seen: GapReasons) -> None:
        self._aborted = aborted
        self._seen = seen

    def has(self, header: BatchHeader) -> bool:
        is_aborted = self._aborted.has(header)
        span = (header.base_offset, header.last_offset)
        if header.is_control:
            self._seen.markers.append(span)
        elif is_aborted:
            self._seen.aborted.append(span)
        return is_aborted


def offsets_in(spans: Iterable[Span], first: int, last: int) -> int:
    """
    How many of these offsets are in the spans.
    """
    return sum(max(0, min(end, last) - max(start, first) + 1) for start, end in spans)
