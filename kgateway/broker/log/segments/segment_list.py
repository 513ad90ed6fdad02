"""
The log of one partition: segments in a row, of which the last is appended to.

It knows batches and their positions; leadership, high watermark and waiting readers belong to the partition.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from kgateway.broker.log.files.file_cache import FileCache
from kgateway.broker.log.segments.index import OFFSETS
from kgateway.broker.log.segments.segment import OFFSETS_MAX, Segment
from kgateway.records.batch import BatchHeader
from kgateway.wire.types import Buffer

_POSITIONS_MAX = (1 << 31) - 1  # as an index can have


class SegmentLimits(NamedTuple):
    """
    When a segment is full, and how densely it is indexed.
    """

    segment_bytes: int
    segment_ms: int
    index_interval_bytes: int
    index_bytes: int = 10 << 20  # of the index of offsets


@dataclass(slots=True)
class LogEnd:
    """
    An offset, the base of its segment, and its position in that file.
    """

    offset: int
    segment_base: int
    position: int


class SegmentList:
    """
    Segments, oldest first; there is always one.
    """

    __slots__ = ("_bases", "files", "folder", "segments")

    def __init__(self, files: FileCache, folder: Path, segments: list[Segment]) -> None:
        self.files = files
        self.folder = folder
        self.segments = segments
        self._bases = [segment.base_offset for segment in segments]

    @property
    def start_offset(self) -> int:
        return self._bases[0]

    @property
    def end_offset(self) -> int:
        return self.segments[-1].next_offset

    @property
    def end(self) -> LogEnd:
        last = self.segments[-1]
        return LogEnd(last.next_offset, last.base_offset, last.size)

    @property
    def ends_in_gap(self) -> bool:
        """
        Whether no batch has the offset before the end.
        """
        last = self.segments[-1]
        return len(self.segments) > 1 and not last.size and self.segments[-2].next_offset < last.base_offset

    def segment_of(self, offset: int) -> Segment:
        """
        The segment that has the offset, or the first one after it.
        """
        number = max(bisect_right(self._bases, offset) - 1, 0)
        while self.segments[number].next_offset <= offset and number + 1 < len(self.segments):
            number += 1  # nothing with this offset is left, as after damage
        return self.segments[number]

    def is_full_for(self, header: BatchHeader, limits: SegmentLimits) -> bool:
        last = self.segments[-1]
        if not last.size:
            return False
        segment_bytes, segment_ms, _, index_bytes = limits
        grown = last.size + header.size
        if grown > segment_bytes or grown > _POSITIONS_MAX:
            return True
        if last.next_offset + header.last_offset_delta - last.base_offset > OFFSETS_MAX:
            return True
        if len(last.indexes.offsets) >= index_bytes // OFFSETS.size:
            return True
        began = last.first_timestamp
        return began is not None and header.max_timestamp - began > segment_ms and began >= 0

    def roll(self) -> Segment:
        """
        Begin a new segment. Returns the sealed one.
        """
        sealed = self.segments[-1]
        fresh = Segment(self.files, self.folder, sealed.next_offset)
        sealed.seal()
        sealed.indexes.save()
        self.files.get(fresh.path, create=True)
        self.segments.append(fresh)
        self._bases.append(fresh.base_offset)
        sealed.indexes.unload()
        return sealed

    def append(self, buffers: Sequence[Buffer], header: BatchHeader, base_offset: int, limits: SegmentLimits) -> None:
        """
        Write a batch after the others. An OSError leaves everything as it was.
        """
        self.segments[-1].append(buffers, header, base_offset, limits.index_interval_bytes)

    def drop_before(self, offset: int) -> list[Segment]:
        """
        Drop and return the segments that are wholly before the offset; the last one is kept.
        """
        count = max(bisect_right(self._bases, offset) - 1, 0)
        gone = self.segments[:count]
        del self.segments[:count], self._bases[:count]
        return gone

    def replace(self, fresh: Segment) -> list[Segment]:
        """
        Put this segment in place of all segments in its range of offsets. Returns those.
        """
        first, end = bisect_left(self._bases, fresh.base_offset), bisect_left(self._bases, fresh.next_offset)
        gone = self.segments[first:end]
        self.segments[first:end], self._bases[first:end] = [fresh], [fresh.base_offset]
        return gone

    def has(self, segment: Segment) -> bool:
        number = bisect_left(self._bases, segment.base_offset)
        return number < len(self.segments) and self.segments[number] is segment

    def truncate(self, offset: int) -> None:
        """
        Cut the batch that has the offset, and everything after it.
        """
        while self.segments[-1].base_offset > offset:
            dropped = self.segments.pop()
            self._bases.pop()
            self.remove(dropped)
        last = self.segments[-1]
        if offset >= last.next_offset:
            return
        file = self.files.get(last.path)
        position = last.position_of(file.read, offset, last.size)
        last.cut(position)

    def remove(self, segment: Segment) -> None:
        self.files.close(segment.path)
        names = self.files.disk.names(self.folder)
        for name in names:
            if name.startswith(f"{segment.path.stem}.") and not name.endswith(".snapshot"):
                self.files.disk.remove(self.folder / name)

    def save_indexes(self) -> None:
        """
        Save the indexes of the last segment; those of the others are saved.
        """
        self.segments[-1].indexes.save()
