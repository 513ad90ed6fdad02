"""
The segments of one partition, read from their files; `kgateway.broker.log` describes the formats.

No lock is taken, and the owner of the log may write to it and delete from it meanwhile. So nothing behind the given end
is read, and a segment that vanishes was either deleted, which is reported, or replaced by compaction.

Aborted transactions are read from `.txnindex` files. A timestamp is searched by the indexes first, then in the headers
of batches, then in records.
"""

from bisect import bisect_right
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import PurePath
from struct import Struct
from typing import NamedTuple

from kgateway.broker.log.segments.file_names import LOG, file_name, offsets_of
from kgateway.broker.log.segments.index import FIRST, INDEX, OFFSETS, TIME_INDEX, TIMES, Index
from kgateway.broker.partition.timestamp_search import find_time
from kgateway.broker.partition.transactions import ABORTED_INDEX, decode_aborted
from kgateway.client.offsets import Extent, OffsetAndTimestamp
from kgateway.records.batch import HEADER_SIZE, Batch, Incomplete, read_batch, read_header
from kgateway.spark.errors import Unreadable
from kgateway.spark.logs.files import Files, OpenFile
from kgateway.spark.logs.interface import AbortedTransactions, OffsetGone
from kgateway.wire.errors import Malformed

WINDOW_BYTES = 4 << 20
_NO_END = 1 << 63
_NOTHING = OffsetAndTimestamp(None, None)


class BatchRun(NamedTuple):
    """
    Successive batches, and the offset behind them.
    """

    batches: list[Batch]
    next_offset: int


class Segments:
    def __init__(self, files: Files, folder: PurePath) -> None:
        self.files = files
        self.folder = folder

    def bases(self) -> list[int]:
        return offsets_of(self.files.names(self.folder), LOG)

    def end_offset(self) -> int:
        """
        The offset behind the last complete batch.
        """
        end = (self.bases() or [0])[-1]
        for run in self.batches(end, end, _NO_END):
            end = run.next_offset
        return end

    def windows(self, start: int, end: int) -> Iterator[BatchRun]:
        """
        The batches with offsets from the start up to the end, some at a time. OffsetGone where the start does not exist
        any more.
        """
        position, base = start, -1
        while position < end:
            bases = self.bases()
            behind = bisect_right(bases, position)
            if not behind:
                raise OffsetGone(position, Extent(bases[0] if bases else end, end))
            if bases[behind - 1] <= base:  # already read to its end
                if behind == len(bases):
                    return
                behind += 1
            base = bases[behind - 1]
            if base >= end:  # the rest of the range was compacted away
                yield BatchRun([], end)
                return
            position = max(position, base)
            try:
                for run in self.batches(base, position, end):
                    position = run.next_offset
                    yield run
            except FileNotFoundError:
                base = -1  # it was deleted after the folder was listed

    def batches(self, base: int, start: int, end: int, position: int | None = None) -> Iterator[BatchRun]:
        """
        The batches of one segment, from the one that has the start, or from this position in the file.
        """
        path = self.folder / file_name(base, LOG)
        with closing(self.files.open(path)) as file:
            at = self._near(file, base, start) if position is None else position
            expected = base
            while expected < end:
                data = file.read(at, WINDOW_BYTES)
                if len(data) == WINDOW_BYTES:
                    data = self._with_first(path, file, data, at)
                run, used = _cut(data, at, expected, end, path)
                if run.next_offset == expected:
                    return
                wanted = [batch for batch in run.batches if batch.header.last_offset >= start]
                if wanted or run.next_offset >= end:
                    yield BatchRun(wanted, run.next_offset)
                expected = run.next_offset
                at += used

    def index(self, base: int, suffix: str, entry: Struct) -> Index:
        """
        An index of a segment, without the zeroes behind its entries: Kafka preallocates the index that it writes to.
        Empty where the segment has none.
        """
        try:
            data = self.files.read(self.folder / file_name(base, suffix))
        except FileNotFoundError:
            data = b""
        used = len(data.rstrip(b"\0"))
        return Index(entry, data[: -(-used // entry.size) * entry.size])

    def _near(self, file: OpenFile, base: int, start: int) -> int:
        """
        The position where the search for an offset starts. An index is a hint, and may be wrong.
        """
        _, position = self.index(base, INDEX, OFFSETS).at_most(FIRST, start - base)
        try:
            header = read_header(file.read(position, HEADER_SIZE))
        except Malformed:
            return 0
        return position if base <= header.base_offset <= start else 0

    def _with_first(self, path: PurePath, file: OpenFile, data: bytes, at: int) -> bytes:
        """
        Read more if the first batch is larger than a window.
        """
        with _raising_unreadable(path, at):
            size = read_header(data).size
        return data if size <= len(data) else file.read(at, size)


def _cut(data: bytes, at: int, expected: int, end: int, path: PurePath) -> tuple[BatchRun, int]:
    """
    The complete batches up to the one that reaches the end, and their size.
    """
    found, used = list[Batch](), 0
    while used < len(data) and expected < end:
        with _raising_unreadable(path, at + used):
            try:
                batch = read_batch(data, used)
            except Incomplete:
                break
        header = batch.header
        if header.base_offset >= end:
            expected = end
        elif header.base_offset < expected:
            raise _damaged(path, at + used, f"offset {header.base_offset} comes after offset {expected - 1}")
        else:
            found.append(batch)
            used += len(batch.data)
            expected = header.last_offset + 1
    return BatchRun(found, expected), used


@contextmanager
def _raising_unreadable(path: PurePath, at: int) -> Iterator[None]:
    try:
        yield
    except Malformed as error:
        raise _damaged(path, at, error.reason) from error


def _damaged(path: PurePath, at: int, reason: str) -> Unreadable:
    return Unreadable(f"{path} is damaged at byte {at:,}: {reason}")


def aborted_in(segments: Segments, start: int, end: int) -> AbortedTransactions:
    """
    The aborted transactions that overlap the range.
    """
    found = list[tuple[int, int]]()
    for name in segments.files.names(segments.folder):
        if name.endswith(ABORTED_INDEX):
            for one in decode_aborted(segments.files.read(segments.folder / name)):
                if one.last_offset >= start and one.first_offset < end:
                    found.append((one.producer_id, one.first_offset))
    return AbortedTransactions(found)


def first_at(segments: Segments, extent: Extent, timestamp_ms: int) -> OffsetAndTimestamp:
    """
    The first readable record with this timestamp or a later one.
    """
    bases = segments.bases()
    for base, following in zip(bases, [*bases[1:], extent.end], strict=True):
        if following > extent.start and base < extent.end:
            candidates = _candidates(segments, base, extent, timestamp_ms, is_last=following == extent.end)
            found = find_time(candidates, timestamp_ms, extent.start)
            if found:
                return OffsetAndTimestamp(found.offset, found.timestamp) if found.offset < extent.end else _NOTHING
    return _NOTHING


def _candidates(segments: Segments, base: int, extent: Extent, timestamp_ms: int, *, is_last: bool) -> Iterator[Batch]:
    """
    The batches of a segment that may have such a record. The last segment's indexes may lag behind its log.
    """
    times = segments.index(base, TIME_INDEX, TIMES)
    if not is_last and len(times) and times.entry(-1)[FIRST] < timestamp_ms:
        return
    _, offset = times.at_most(FIRST, timestamp_ms - 1)
    _, position = segments.index(base, INDEX, OFFSETS).at_most(FIRST, offset)
    for run in segments.batches(base, extent.start, extent.end, position):
        for batch in run.batches:
            if batch.header.max_timestamp >= timestamp_ms and not batch.header.is_control:
                yield batch
