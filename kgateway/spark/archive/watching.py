"""
Logs of which it is noted why offsets are missing, while they are read.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field

from kgateway.client.offsets import Extent, Found, Partition
from kgateway.records.batch import BatchHeader
from kgateway.spark.aborted import Aborted
from kgateway.spark.logs import Gone, Logs, Window
from kgateway.spark.ranges import OffsetRange

Span = tuple[int, int]  # the first and the last offset


@dataclass
class Seen:
    """
    What was seen that is no record.
    """

    markers: list[Span] = field(default_factory=list)
    aborted: list[Span] = field(default_factory=list)
    gone: Gone | None = None  # why reading has come to an end


class Watched:
    """
    The logs.
    """

    def __init__(self, logs: Logs, seen: Seen) -> None:
        self._logs = logs
        self._seen = seen

    def partitions(self, topics: Iterable[str] | None = None) -> dict[str, list[Partition]]:
        return self._logs.partitions(topics)

    def extents(self, wanted: Collection[Partition]) -> dict[Partition, Extent]:
        return self._logs.extents(wanted)

    def at_time(self, wanted: Collection[Partition], timestamp_ms: int) -> dict[Partition, Found]:
        return self._logs.at_time(wanted, timestamp_ms)

    def windows(self, wanted: OffsetRange) -> Iterator[Window]:
        try:
            for window in self._logs.windows(wanted):
                yield window._replace(aborted=_Noted(window.aborted, self._seen))
        except Gone as gone:
            self._seen.gone = gone
            raise

    def close(self) -> None:
        self._logs.close()


class _Noted(Aborted):
    """
    Notes what of each batch it says.
    """

    def __init__(self, told: Aborted, seen: Seen) -> None:
        self._told = told
        self._seen = seen

    def has(self, header: BatchHeader) -> bool:
        is_aborted = self._told.has(header)
        span = (header.base_offset, header.last_offset)
        if header.is_control:
            self._seen.markers.append(span)
        elif is_aborted:
            self._seen.aborted.append(span)
        return is_aborted


def counted(spans: Iterable[Span], first: int, last: int) -> int:
    """
    How many of these offsets are in the spans.
    """
    return sum(max(0, min(end, last) - max(start, first) + 1) for start, end in spans)
