"""
Finds records by timestamp: indexes and batch headers tell where to look, the records decide.

The largest timestamp in a header comes from the producer. If it is too large, or so small that it cannot be true, the
batch is opened. One that is too small but could be true hides the later records of its batch; Kafka knows better,
because it opens each batch that is produced.

A search runs in a thread, on open files of its own.
"""

from collections.abc import Iterator, Sequence

from kgateway.broker.log.files.disk import Disk
from kgateway.broker.log.segments.batch_scan import Damage, scan
from kgateway.broker.log.segments.segment import Segment, largest_timestamp
from kgateway.broker.log.segments.segment_list import LogEnd, SegmentList
from kgateway.broker.partition.timestamp_search import find_max_time, find_time
from kgateway.cluster.partition import TimestampAndOffset
from kgateway.records.batch import NO_TIMESTAMP, Batch


class TimeSearch:
    """
    Searches segments, oldest first, from an offset up to a limit.
    """

    def __init__(self, disk: Disk, segments: Sequence[Segment], start: int, limit: LogEnd) -> None:
        self._disk = disk
        self._segments = [segment for segment in segments if segment.base_offset <= limit.segment_base]
        self._start = start
        self._limit = limit
        self.searched: list[Segment] = []  # whose indexes are loaded now

    def is_of(self, segment_list: SegmentList) -> bool:
        """
        Whether these are still segments of the log.
        """
        return all(map(segment_list.has, self._segments))

    def first(self, timestamp: int) -> TimestampAndOffset | None:
        """
        The first record with this timestamp or a later one.
        """
        for segment in self._segments:
            if segment.largest() >= timestamp:
                self.searched.append(segment)
                for batch in self._batches(segment, segment.position_of_time(timestamp)):
                    found = (
                        find_time([batch], timestamp, self._start)
                        if largest_timestamp(batch.header) >= timestamp
                        else None
                    )
                    if found:
                        return found
        return None

    def largest(self) -> TimestampAndOffset | None:
        """
        The first record with the largest timestamp; `None` if no record has a timestamp.
        """
        claimed = max((segment.largest() for segment in self._segments), default=NO_TIMESTAMP)
        if claimed <= NO_TIMESTAMP or self._start >= self._limit.offset:
            return None
        found = self.first(claimed)
        return found if found and found.timestamp == claimed else self._largest_of_all()

    def _largest_of_all(self) -> TimestampAndOffset | None:
        """
        Search all batches: an index or header claims a timestamp that no record has up to the limit.
        """
        best: TimestampAndOffset | None = None
        for segment in self._segments:
            least = best.timestamp + 1 if best else 0
            if segment.largest() < least:
                continue
            for batch in self._batches(segment, 0):
                least = best.timestamp + 1 if best else 0
                if largest_timestamp(batch.header) >= least:
                    found = find_max_time([batch], self._start)
                    best = found if found and found.timestamp >= least else best
        return best

    def _batches(self, segment: Segment, position: int) -> Iterator[Batch]:
        end = self._limit.position if segment.base_offset == self._limit.segment_base else segment.size
        file = self._disk.open(segment.path)
        try:
            for found in scan(file.read, position, end, segment.base_offset):
                if not isinstance(found, Damage) and found.header.last_offset >= self._start:
                    yield found
        finally:
            file.close()
