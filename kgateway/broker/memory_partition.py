"""
A partition whose log is a list of batches in memory.

Beside the batches stand two more lists: at which offset each begins, and how many bytes come before it. By the one a
read finds where to begin, by the other where to end, each by bisection.
"""

from bisect import bisect_right
from collections.abc import Callable

from zope.interface import implementer

from kgateway.broker.memory_times import TimeIndex
from kgateway.broker.owned import OwnedPartition
from kgateway.broker.producers import ProducerTable
from kgateway.cluster.partition import Aborted, EpochEnd, Found, Isolation, Read
from kgateway.cluster.view import Topic
from kgateway.interfaces import IPartition
from kgateway.records.batch import Batch, placed
from kgateway.wire.errors import KafkaError
from kgateway.wire.types import Buffer


@implementer(IPartition)
class MemoryPartition(OwnedPartition):
    """
    What is appended is safe, and can be read, at once; and as there are no transactions it is stable, too.
    """

    def __init__(self, topic: Topic, index: int, *, now_ms: Callable[[], int], producer_expiry_ms: int) -> None:
        super().__init__(topic, index, now_ms, ProducerTable(producer_expiry_ms))
        self._batches: list[Buffer] = []  # each a bytes of its own
        self._base_offsets: list[int] = []
        self._positions = [0]  # where in the bytes of the log each batch begins, and where the last one ends
        self._times = TimeIndex(self._batches)

    @property
    def high_watermark(self) -> int:
        return self.log_end

    @property
    def last_stable(self) -> int:
        return self.log_end

    def _keep(self, batch: Batch) -> None:
        data = b"".join(placed(batch, self.log_end, self.leader_epoch))  # a copy, which lets go of the request's frame
        self._batches.append(data)
        self._base_offsets.append(self.log_end)
        self._positions.append(self._positions[-1] + len(data))
        self.log_end += batch.header.last_offset_delta + 1

    def read(self, offset: int, max_bytes: int, isolation: Isolation, at_least_one: bool) -> Read:
        self._check_owned()
        self._check_offset(offset)
        start, end = self.log_start, self.log_end
        aborted: list[Aborted] | None = [] if isolation is Isolation.READ_COMMITTED else None
        if offset == end:
            return Read([], 0, end, end, start, aborted)
        positions = self._positions
        first = bisect_right(self._base_offsets, offset) - 1
        fitting = bisect_right(positions, positions[first] + max_bytes, first) - 1  # the first that does not fit
        last = max(fitting, first + at_least_one)
        return Read(self._batches[first:last], positions[last] - positions[first], end, end, start, aborted)

    def find_time(self, timestamp: int) -> Found | None:
        self._check_owned()
        return self._times.find(timestamp)

    def find_max_time(self) -> Found | None:
        self._check_owned()
        return self._times.find_max()

    def epoch_end(self, leader_epoch: int) -> EpochEnd | None:
        self._check_owned()
        return EpochEnd(leader_epoch, self.log_end) if leader_epoch == self.leader_epoch else None

    def lose(self, why: KafkaError) -> None:
        """
        Be no partition of this gateway any more, and keep no records.
        """
        self._batches.clear()
        super().lose(why)
