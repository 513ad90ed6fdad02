"""
Finds records by their timestamps: the indexes and the heads of batches tell where to look, the records what is there.

The largest timestamp that a head tells is its producer's word. Where it is too large, or so small that it cannot be
true, the batch is opened and found out. One that is too small but could be true hides the later records of its batch;
Kafka knows better there, for it opens each batch that is produced.

This runs in a thread, on open files of its own.
"""

from collections.abc import Iterator, Sequence

from kgateway.broker.log.disk import Disk
from kgateway.broker.log.partition_log import End, PartitionLog
from kgateway.broker.log.segment import Segment, largest_timestamp
from kgateway.broker.log.walking import Damage, scan
from kgateway.broker.timestamps import records_from
from kgateway.cluster.partition import Found
from kgateway.records.batch import NO_TIMESTAMP, Batch


class TimeSearch:
    """
    Looks through segments, oldest first, from an offset on up to a limit.
    """

    def __init__(self, disk: Disk, segments: Sequence[Segment], start: int, limit: End) -> None:
        self._disk = disk
        self._segments = [segment for segment in segments if segment.base_offset <= limit.base_offset]
        self._start = start
        self._limit = limit
        self.searched: list[Segment] = []  # whose indexes are in memory now

    def is_of(self, log: PartitionLog) -> bool:
        """
        Whether these are segments of the log still.
        """
        return all(map(log.has, self._segments))

    def first(self, timestamp: int) -> Found | None:
        """
        The first record with this timestamp or a later one.
        """
        for segment in self._segments:
            if segment.largest() >= timestamp:
                self.searched.append(segment)
                for batch in self._batches(segment, segment.position_of_time(timestamp)):
                    found = self._first_in(batch, timestamp) if largest_timestamp(batch.header) >= timestamp else None
                    if found:
                        return found
        return None

    def largest(self) -> Found | None:
        """
        The first of the records that have the largest timestamp; none where no record has any.
        """
        claimed = max((segment.largest() for segment in self._segments), default=NO_TIMESTAMP)
        if claimed <= NO_TIMESTAMP or self._start >= self._limit.offset:
            return None
        found = self.first(claimed)
        return found if found and found.timestamp == claimed else self._largest_of_all()

    def _largest_of_all(self) -> Found | None:
        """
        Somebody's claim was not true, or its record is behind the limit, or gone.
        """
        best: Found | None = None
        for segment in self._segments:
            least = best.timestamp + 1 if best else 0
            if segment.largest() < least:
                continue
            for batch in self._batches(segment, 0):
                least = best.timestamp + 1 if best else 0
                if largest_timestamp(batch.header) >= least:
                    most = max((time for _, time in records_from(self._start, batch)), default=NO_TIMESTAMP)
                    best = self._first_in(batch, most) if most >= least else best
        return best

    def _batches(self, segment: Segment, position: int) -> Iterator[Batch]:
        end = self._limit.position if segment.base_offset == self._limit.base_offset else segment.size
        file = self._disk.open(segment.path)
        try:
            for found in scan(file.read, position, end, segment.base_offset):
                if not isinstance(found, Damage) and found.header.last_offset >= self._start:
                    yield found
        finally:
            file.close()

    def _first_in(self, batch: Batch, timestamp: int) -> Found | None:
        for offset, time in records_from(self._start, batch):
            if time >= timestamp:
                return Found(offset, time, batch.header.partition_leader_epoch)
        return None
