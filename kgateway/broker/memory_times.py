"""
Finds records by their timestamps.

The largest timestamp in a header is the producer's word, and may be anything. Kafka opens each batch that is produced
to know better; here batches are opened only when somebody asks for a time, and each once for that.
"""

from bisect import bisect_left, bisect_right

from kgateway.broker.timestamps import records_from
from kgateway.cluster.partition import EARLIEST_OFFSET, Found
from kgateway.records.batch import NO_TIMESTAMP, read_batch, read_header
from kgateway.wire.types import Buffer

_NONE_YET = -(1 << 63) - 1  # before any timestamp there can be


class TimeIndex:
    """
    What the largest timestamp was after each batch of a log.

    It never falls, so the first batch that has a timestamp or a later one is found by bisection.
    """

    __slots__ = ("_batches", "_highest", "_start")

    def __init__(self) -> None:
        self._start = EARLIEST_OFFSET  # records before it are not there any more, though their batch may be
        self._batches: list[Buffer] = []
        self._highest: list[int] = []

    def add(self, batch: Buffer) -> None:
        """
        One more batch of the log.
        """
        self._batches.append(batch)

    def begin_at(self, offset: int) -> None:
        """
        All before the offset is gone. What was found out is found out again, for it may have been of a record there.
        """
        gone = bisect_right(self._batches, offset, key=lambda batch: read_header(batch).last_offset + 1)
        del self._batches[:gone]
        self._highest.clear()
        self._start = offset

    def find(self, timestamp: int) -> Found | None:
        """
        The first record with this timestamp or a later one.
        """
        self._catch_up()
        position = bisect_left(self._highest, timestamp)
        if position == len(self._highest):
            return None
        batch = read_batch(self._batches[position])
        found = ((offset, time) for offset, time in records_from(self._start, batch) if time >= timestamp)
        return Found(*next(found), batch.header.partition_leader_epoch)

    def find_max(self) -> Found | None:
        """
        The first of the records with the largest timestamp; none where no record has any.
        """
        self._catch_up()
        highest = self._highest[-1] if self._highest else NO_TIMESTAMP
        return self.find(highest) if highest > NO_TIMESTAMP else None

    def _catch_up(self) -> None:
        highest = self._highest[-1] if self._highest else _NONE_YET
        for position in range(len(self._highest), len(self._batches)):
            times = (time for _, time in records_from(self._start, read_batch(self._batches[position])))
            highest = max(highest, max(times, default=_NONE_YET))
            self._highest.append(highest)
