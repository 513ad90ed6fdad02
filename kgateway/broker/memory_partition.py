"""
A partition whose log is a list of batches in memory.
"""

from collections.abc import Callable
from math import inf

from twisted.internet.defer import Deferred
from zope.interface import implementer

from kgateway.broker.memory_times import TimeIndex
from kgateway.broker.owned import OwnedPartition
from kgateway.broker.producers import ProducerTable
from kgateway.broker.retention import Piece, Standing, expired, limits_of
from kgateway.broker.tail import Tail
from kgateway.cluster.partition import EARLIEST_OFFSET, EpochEnd, Found, Isolation, Read
from kgateway.cluster.view import Topic
from kgateway.interfaces import IPartition
from kgateway.records.batch import Batch, placed, read_header
from kgateway.wire.errors import KafkaError
from kgateway.wire.types import Buffer


@implementer(IPartition)
class MemoryPartition(OwnedPartition):
    """
    What is appended is safe, and can be read, at once.
    """

    def __init__(self, topic: Topic, index: int, *, now_ms: Callable[[], int], producer_expiry_ms: int) -> None:
        super().__init__(topic, index, now_ms, ProducerTable(producer_expiry_ms))
        self._tail: Tail[Buffer] = Tail(EARLIEST_OFFSET)  # which is all of it
        self._times = TimeIndex()
        self._changed_ms = now_ms()

    @property
    def high_watermark(self) -> int:
        return self.log_end

    @property
    def last_stable(self) -> int:
        return self._stable(self.log_end)

    @property
    def size(self) -> int:
        """
        Of all batches, in bytes.
        """
        return self._tail.size

    def _keep(self, batch: Batch) -> None:
        base_offset = self.log_end
        data = b"".join(placed(batch, base_offset, self.leader_epoch))  # a copy, which lets go of the request's frame
        self.log_end += batch.header.last_offset_delta + 1
        self._tail.add(data, base_offset, self.log_end)
        self._times.add(data)
        self._changed_ms = self._now_ms()

    def read(self, offset: int, max_bytes: int, isolation: Isolation, at_least_one: bool, due: float = inf) -> Read:
        self._check_owned()
        self._check_offset(offset)
        is_committed = isolation is Isolation.READ_COMMITTED
        stable, batches, size = self.last_stable, list[Buffer](), 0
        end = stable if is_committed else self.log_end
        if offset < end:
            batches, size = self._tail.read(offset, max_bytes, at_least_one, end)
        aborted = self._aborted(offset, batches) if is_committed else None
        return Read(batches, size, self.log_end, stable, self.log_start, aborted)

    def find_time(self, timestamp: int) -> Found | None:
        self._check_owned()
        return self._times.find(timestamp)

    def find_max_time(self) -> Found | None:
        self._check_owned()
        return self._times.find_max()

    def epoch_end(self, leader_epoch: int) -> EpochEnd | None:
        self._check_owned()
        return EpochEnd(leader_epoch, self.log_end) if leader_epoch == self.leader_epoch else None

    async def _begin_at(self, offset: int) -> None:
        self.log_start = offset
        self._tail.cut(offset)
        self._times.begin_at(offset)
        self._producers.transactions.aborted.begin_at(offset)

    def expire(self) -> Deferred[None]:
        return Deferred.fromCoroutine(self._expire())

    async def _expire(self) -> None:
        """
        Here a batch is what goes as a whole.
        """
        self._check_owned()
        limits, log = limits_of(self.topic), Standing(self._tail.size, self.log_start, self.high_watermark)
        if limits.are_none:
            return
        kept = self._tail.batches
        count = expired(map(self._piece, kept), log, limits, self._now_ms())
        if count:
            await self._begin_at(self._piece(kept[count - 1]).end)

    def _piece(self, data: Buffer) -> Piece:
        header = read_header(data)
        return Piece(header.size, header.last_offset + 1, header.max_timestamp, self._changed_ms)

    def lose(self, why: KafkaError) -> None:
        """
        Be no partition of this gateway any more, and keep no records.
        """
        self._tail, self._times = Tail(self.log_end), TimeIndex()
        super().lose(why)
