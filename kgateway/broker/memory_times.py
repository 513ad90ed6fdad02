"""
Finds records by their timestamps.

The largest timestamp in a header is the producer's word, and may be anything. Kafka opens each batch that is produced
to know better; here batches are opened only when somebody asks for a time, and each once for that.
"""

from bisect import bisect_left
from collections.abc import Sequence

from kgateway.broker.timestamps import timestamps
from kgateway.cluster.partition import Found
from kgateway.records.batch import NO_TIMESTAMP, read_batch
from kgateway.wire.types import Buffer

_NONE_YET = -(1 << 63) - 1  # before any timestamp there can be


class TimeIndex:
    """
    What the largest timestamp was after each batch of a log.

    It never falls, so the first batch that has a timestamp or a later one is found by bisection.
    """

    __slots__ = ("_batches", "_highest")

    def __init__(self, batches: Sequence[Buffer]) -> None:
        self._batches = batches  # of the log, which grows
        self._highest: list[int] = []

    def find(self, timestamp: int) -> Found | None:
        """
        The first record with this timestamp or a later one.
        """
        self._catch_up()
        position = bisect_left(self._highest, timestamp)
        if position == len(self._highest):
            return None
        batch = read_batch(self._batches[position])
        base_offset, leader_epoch = batch.header.base_offset, batch.header.partition_leader_epoch
        # A record is where it stands. What it says of its own offset is the producer's word as well.
        found = ((base_offset + index, time) for index, time in enumerate(timestamps(batch)) if time >= timestamp)
        return Found(*next(found), leader_epoch)

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
            highest = max(highest, max(timestamps(read_batch(self._batches[position])), default=_NONE_YET))
            self._highest.append(highest)
