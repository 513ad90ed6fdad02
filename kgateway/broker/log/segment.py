"""
A part of a partition's log: one file of batches, named after its first offset, and the two indexes beside it.

    00000000000000000000.log        batches, one behind the other, as they were produced
    00000000000000000000.index      where some of them begin (index.py)
    00000000000000000000.timeindex  which timestamps there are up to where

What this process has appended is known to be good; what it found in the file is checked before it is first given out.
"""

from collections.abc import Generator, Sequence
from pathlib import Path

from kgateway.broker.log.index import FIRST, SECOND
from kgateway.broker.log.open_files import OpenFiles
from kgateway.broker.log.segment_indexes import SegmentIndexes
from kgateway.broker.log.walking import Damaged, Source, locate, scan
from kgateway.records.batch import HEADER_SIZE, NO_TIMESTAMP, Batch, BatchHeader, TimestampType, read_header
from kgateway.wire.malformed import Malformed
from kgateway.wire.types import Buffer

LOG = ".log"
CLEANED = ".cleaned"  # behind that of one which compaction has written, until it takes the place of others
LET_GO = ".deleted"  # behind the name of a file that nobody finds any more; it is removed later
OFFSETS_MAX = (1 << 31) - 1  # as far as an index can tell offsets from the base
ANY_TIME = (1 << 63) - 1
_NO_TIME = -(1 << 63)
_PLACES_MAX = 32


def file_name(base_offset: int, suffix: str) -> str:
    """
    What Kafka calls a file that begins with this offset.
    """
    return f"{base_offset:020d}{suffix}"


class Segment:
    """
    Batches from one offset on.
    """

    __slots__ = (
        "_files",
        "_places",
        "_since_entry",
        "_written_early",
        "base_offset",
        "first_timestamp",
        "indexes",
        "largest_timestamp",
        "largest_timestamp_offset",
        "next_offset",
        "path",
        "size",
        "unchecked",
    )

    def __init__(self, files: OpenFiles, folder: Path, base_offset: int) -> None:
        self.base_offset = self.next_offset = base_offset
        self.path = folder / file_name(base_offset, LOG)
        self.size = 0
        self.first_timestamp: int | None = None  # of the first batch, where that is known
        self.largest_timestamp = _NO_TIME
        self.largest_timestamp_offset = base_offset
        self.unchecked = range(0)  # bytes found in the file
        self.indexes = SegmentIndexes(files.disk, self.path)
        self._files = files
        self._since_entry = 0
        self._written_early = 0
        self._places: dict[int, int] = {}  # where batches begin that readers will probably ask for

    def append(self, buffers: Sequence[Buffer], header: BatchHeader, base_offset: int, interval: int) -> None:
        """
        Write a batch that has its place. An OSError leaves all as it was.
        """
        self._files.get(self.path).append(buffers)
        self.note(header, base_offset, interval)

    def note(self, header: BatchHeader, base_offset: int, interval: int) -> None:
        """
        A batch is there behind the others: index it where `interval` bytes have come since the last that was.
        """
        last_offset = base_offset + header.last_offset_delta
        largest = largest_timestamp(header)
        if self.first_timestamp is None:
            self.first_timestamp = largest
        if largest > self.largest_timestamp:
            self.largest_timestamp, self.largest_timestamp_offset = largest, last_offset
        if self._since_entry > interval:
            self.indexes.offsets.append(last_offset - self.base_offset, self.size)
            self._note_time()
            self._since_entry = 0
        self._since_entry += header.size
        self.size += header.size
        self.next_offset = last_offset + 1

    def pass_over(self, position: int, next_offset: int) -> None:
        """
        What stands before this position is damage, and this offset is next: there the indexes go on.
        """
        self.size, self.next_offset = position, next_offset
        self.unchecked = range(position)
        self._since_entry = position

    def _note_time(self) -> None:
        last, _ = self.indexes.times.entry(-1) if len(self.indexes.times) else (_NO_TIME, 0)
        if self.largest_timestamp > max(last, NO_TIMESTAMP):
            self.indexes.times.append(self.largest_timestamp, self.largest_timestamp_offset - self.base_offset)

    def position_of(self, source: Source, offset: int, end: int) -> int:
        """
        Where the batch begins that has the offset.
        """
        known = self._places.get(offset)
        if known is not None:
            return known
        _, near = self.indexes.offsets.at_most(FIRST, offset - self.base_offset)
        try:
            return locate(source, near, end, offset)
        except Damaged:
            if not near:
                raise
            return locate(source, 0, end, offset)  # slow, but it may be the index that is damaged

    def largest(self) -> int:
        """
        No record has a later timestamp.
        """
        if self.largest_timestamp == _NO_TIME:
            self.largest_timestamp, _ = self.indexes.last_time or (_NO_TIME, 0)
        return max(self.largest_timestamp, NO_TIMESTAMP)  # which no index tells of

    def position_of_time(self, timestamp: int) -> int:
        """
        Where to begin to look for a batch with this timestamp or a later one.
        """
        _, offset = self.indexes.times.at_most(FIRST, timestamp - 1)
        _, position = self.indexes.offsets.at_most(FIRST, offset)
        return position

    def is_unchecked(self, start: int, end: int) -> bool:
        """
        Whether nobody has looked yet if what stands between these positions is what was written.
        """
        return start < self.unchecked.stop and end > self.unchecked.start

    def checked(self, start: int, end: int) -> None:
        """
        What stands between these positions is good.
        """
        if start <= self.unchecked.start < end:
            self.unchecked = range(end, max(end, self.unchecked.stop))

    def expect(self, offset: int, position: int) -> None:
        """
        A reader will ask for this offset next, and a batch begins with it.
        """
        if len(self._places) >= _PLACES_MAX:
            self._places.clear()
        self._places[offset] = position

    def forget_places(self) -> None:
        """
        Something was cut off.
        """
        self._places.clear()

    def seal(self) -> None:
        """
        No batch comes any more: the last entry of the time index tells of the whole segment.
        """
        self._note_time()

    def early(self, step: int) -> tuple[int, int] | None:
        """
        Position and size of what the disk should begin to write, once that is a step.
        """
        start = self._written_early
        if self.size - start < step:
            return None
        self._written_early = self.size
        return start, self.size - start

    def take_over(self, size: int, next_offset: int) -> None:
        """
        It is full, and its files are as they should be.
        """
        self.size, self.next_offset = size, next_offset
        self.unchecked = range(size)
        self.indexes.forget()

    def resume(self, offset: int) -> Generator[None, None, None]:
        """
        Use what the files have indexed of batches before an offset, as far as that can be.

        The batch of the last entry, and all behind it, are still to be noted.
        """
        indexes = self.indexes
        indexes.forget()
        indexes.offsets.cut(FIRST, offset - self.base_offset)
        reached, position = indexes.offsets.entry(-1) if len(indexes.offsets) else (0, 0)
        can_be = True
        for grows in indexes.grow():
            can_be = can_be and grows
            yield
        first, last = (self._header_at(at) if can_be else None for at in (0, position))
        if not (first and last and (not position or last.last_offset - self.base_offset == reached)):
            indexes.clear()
            return
        self._go_back()
        if position:
            self.next_offset = last.base_offset
        self.first_timestamp = largest_timestamp(first)

    def _header_at(self, position: int) -> BatchHeader | None:
        """
        Of the batch that begins there, if one does.
        """
        try:
            return read_header(self._files.get(self.path).read(position, HEADER_SIZE))
        except Malformed:
            return None

    def cut(self, position: int) -> None:
        """
        Drop what is behind this position, where a batch begins.
        """
        file = self._files.get(self.path)
        file.truncate(position)
        self._written_early = min(self._written_early, position)
        self.forget_places()
        self.indexes.offsets.cut(SECOND, position)
        first = self._header_at(0) if position else None
        self.first_timestamp = largest_timestamp(first) if first else None
        self.next_offset = self.base_offset
        self._go_back()
        for found in scan(file.read, self.size, position, self.base_offset):
            if isinstance(found, Batch):
                self.note(found.header, found.header.base_offset, OFFSETS_MAX)

    def _go_back(self) -> None:
        """
        To the last indexed batch, which is to be noted again.
        """
        reached, position = self.indexes.offsets.entry(-1) if len(self.indexes.offsets) else (-1, 0)
        self.indexes.times.cut(SECOND, reached + 1)
        self.largest_timestamp, self.largest_timestamp_offset = _NO_TIME, self.base_offset
        if len(self.indexes.times):
            timestamp, at = self.indexes.times.entry(-1)
            self.largest_timestamp, self.largest_timestamp_offset = timestamp, self.base_offset + at
        self.size, self._since_entry = position, 0


def largest_timestamp(header: BatchHeader) -> int:
    """
    No record of the batch has a later one, if its producer tells the truth; one below the first is no truth.
    """
    if header.max_timestamp >= header.base_timestamp:
        return header.max_timestamp
    # Both of these put something else into one of the two.
    is_told_by_broker = header.timestamp_type is TimestampType.LOG_APPEND_TIME or header.has_delete_horizon
    return header.max_timestamp if is_told_by_broker else ANY_TIME
