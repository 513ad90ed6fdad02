"""
A part of a partition's log: one file of batches, named after its first offset, and the two indexes beside it.

    00000000000000000000.log        batches, one after the other, as they were produced
    00000000000000000000.index      where some of them begin (index.py)
    00000000000000000000.timeindex  the largest timestamps up to some of them

Batches that this process has appended are good; those it found in the file are checked before they are first handed
out.
"""

from collections.abc import Generator, Sequence
from pathlib import Path

from kgateway.broker.log.files.file_cache import FileCache
from kgateway.broker.log.segments.batch_scan import Damaged, Source, locate_batch, scan
from kgateway.broker.log.segments.file_names import LOG, file_name
from kgateway.broker.log.segments.index import FIRST, SECOND, SegmentIndexes
from kgateway.records.batch import HEADER_SIZE, NO_TIMESTAMP, Batch, BatchHeader, TimestampType, read_header
from kgateway.wire.errors import Malformed
from kgateway.wire.types import Buffer

OFFSETS_MAX = (1 << 31) - 1  # from the base, as an index can have
ANY_TIME = (1 << 63) - 1
_NO_TIME = -(1 << 63)
_POSITIONS_KEPT = 32


class Segment:
    __slots__ = (
        "_files",
        "_positions",
        "_since_entry",
        "base_offset",
        "first_timestamp",
        "indexes",
        "largest_timestamp",
        "largest_timestamp_offset",
        "next_offset",
        "path",
        "size",
        "unchecked",
        "written_early",
    )

    def __init__(self, files: FileCache, folder: Path, base_offset: int) -> None:
        self.base_offset = self.next_offset = base_offset
        self.path = folder / file_name(base_offset, LOG)
        self.size = 0
        self.first_timestamp: int | None = None  # of the first batch, if that is known
        self.largest_timestamp = _NO_TIME
        self.largest_timestamp_offset = base_offset
        self.unchecked = range(0)  # bytes found in the file
        self.indexes = SegmentIndexes(files.disk, self.path)
        self._files = files
        self._since_entry = 0
        self.written_early = 0
        self._positions: dict[int, int] = {}  # of batches that readers will probably ask for next, by offset

    def append(self, buffers: Sequence[Buffer], header: BatchHeader, base_offset: int, interval: int) -> None:
        """
        Write a batch, which has its offsets already. An OSError leaves everything as it was.
        """
        self._files.get(self.path).append(buffers)
        self.add(header, base_offset, interval)

    def add(self, header: BatchHeader, base_offset: int, interval: int) -> None:
        """
        Add a batch after the others; index it if more than `interval` bytes were added since the last entry.
        """
        size, last_offset = header.size, base_offset + header.last_offset_delta
        largest = largest_timestamp(header)
        if self.first_timestamp is None:
            self.first_timestamp = largest
        if largest > self.largest_timestamp:
            self.largest_timestamp, self.largest_timestamp_offset = largest, last_offset
        if self._since_entry > interval:
            self.indexes.offsets.append(last_offset - self.base_offset, self.size)
            self._add_time_entry()
            self._since_entry = 0
        self._since_entry += size
        self.size += size
        self.next_offset = last_offset + 1

    def skip_damage(self, position: int, next_offset: int) -> None:
        """
        Continue after damage that ends at this position, with this offset.
        """
        self.size, self.next_offset = position, next_offset
        self.unchecked = range(position)
        self._since_entry = position

    def _add_time_entry(self) -> None:
        last, _ = self.indexes.times.entry(-1) if len(self.indexes.times) else (_NO_TIME, 0)
        if self.largest_timestamp > max(last, NO_TIMESTAMP):
            self.indexes.times.append(self.largest_timestamp, self.largest_timestamp_offset - self.base_offset)

    def position_of(self, source: Source, offset: int, end: int) -> int:
        """
        The position of the batch that has the offset.
        """
        known = self._positions.get(offset)
        if known is not None:
            return known
        _, near = self.indexes.offsets.at_most(FIRST, offset - self.base_offset)
        try:
            return locate_batch(source, near, end, offset)
        except Damaged:
            if not near:
                raise
            return locate_batch(source, 0, end, offset)  # slow, but it may be the index that is damaged

    def largest(self) -> int:
        """
        A timestamp that no record exceeds.
        """
        if self.largest_timestamp == _NO_TIME:
            self.largest_timestamp, _ = self.indexes.last_time or (_NO_TIME, 0)
        return max(self.largest_timestamp, NO_TIMESTAMP)  # which no index has

    def position_of_time(self, timestamp: int) -> int:
        """
        Where to begin a search for this timestamp or a later one.
        """
        _, offset = self.indexes.times.at_most(FIRST, timestamp - 1)
        _, position = self.indexes.offsets.at_most(FIRST, offset)
        return position

    def is_unchecked(self, start: int, end: int) -> bool:
        """
        Whether any of these bytes was found in the file and not checked yet.
        """
        return start < self.unchecked.stop and end > self.unchecked.start

    def checked(self, start: int, end: int) -> None:
        """
        Note that the bytes between these positions are good.
        """
        if start <= self.unchecked.start < end:
            self.unchecked = range(end, max(end, self.unchecked.stop))

    def remember_position(self, offset: int, position: int) -> None:
        """
        Remember the position of the batch that a reader will ask for next.
        """
        if len(self._positions) >= _POSITIONS_KEPT:
            self._positions.clear()
        self._positions[offset] = position

    def forget_positions(self) -> None:
        self._positions.clear()

    def seal(self) -> None:
        """
        Finish the time index: no batch follows, and its last entry stands for the whole segment.
        """
        self._add_time_entry()

    def write_early_part(self) -> tuple[int, int]:
        """
        Position and size of the part that the disk should begin to write: all that is new since the last call.
        """
        start, self.written_early = self.written_early, self.size
        return start, self.size - start

    def trust_files(self, size: int, next_offset: int) -> None:
        """
        Take over a full segment without reading its files.
        """
        self.size, self.next_offset = size, next_offset
        self.unchecked = range(size)
        self.indexes.forget()

    def resume(self, offset: int) -> Generator[None, None, None]:
        """
        Use the entries of the index files for batches before an offset; if one of them is unsound, use none. The batch
        of the last entry, and everything after it, is still to be added.
        """
        indexes = self.indexes
        indexes.forget()
        indexes.offsets.cut(FIRST, offset - self.base_offset)
        reached, position = indexes.offsets.entry(-1) if len(indexes.offsets) else (0, 0)
        is_usable = True
        for is_sound in indexes.check():
            is_usable = is_usable and is_sound
            yield
        first, last = (self._header_at(at) if is_usable else None for at in (0, position))
        if not (first and last and (not position or last.last_offset - self.base_offset == reached)):
            indexes.clear()
            return
        self._back_to_last_entry()
        if position:
            self.next_offset = last.base_offset
        self.first_timestamp = largest_timestamp(first)

    def _header_at(self, position: int) -> BatchHeader | None:
        try:
            return read_header(self._files.get(self.path).read(position, HEADER_SIZE))
        except Malformed:
            return None

    def cut(self, position: int) -> None:
        """
        Drop everything from this position on, at which a batch begins.
        """
        file = self._files.get(self.path)
        file.truncate(position)
        self.written_early = min(self.written_early, position)
        self.forget_positions()
        self.indexes.offsets.cut(SECOND, position)
        first = self._header_at(0) if position else None
        self.first_timestamp = largest_timestamp(first) if first else None
        self.next_offset = self.base_offset
        self._back_to_last_entry()
        for found in scan(file.read, self.size, position, self.base_offset):
            if isinstance(found, Batch):
                self.add(found.header, found.header.base_offset, OFFSETS_MAX)

    def _back_to_last_entry(self) -> None:
        reached, position = self.indexes.offsets.entry(-1) if len(self.indexes.offsets) else (-1, 0)
        self.indexes.times.cut(SECOND, reached + 1)
        self.largest_timestamp, self.largest_timestamp_offset = _NO_TIME, self.base_offset
        if len(self.indexes.times):
            timestamp, at = self.indexes.times.entry(-1)
            self.largest_timestamp, self.largest_timestamp_offset = timestamp, self.base_offset + at
        self.size, self._since_entry = position, 0


def largest_timestamp(header: BatchHeader) -> int:
    """
    The largest timestamp of a batch, as its producer says. If it is below the first, it is not believed.
    """
    if header.max_timestamp >= header.base_timestamp:
        return header.max_timestamp
    # LogAppendTime, and a batch compacted with a delete horizon, have another meaning in one of the two.
    is_told_by_broker = header.timestamp_type is TimestampType.LOG_APPEND_TIME or header.has_delete_horizon
    return header.max_timestamp if is_told_by_broker else ANY_TIME
