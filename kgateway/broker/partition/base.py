"""
What the partitions of all brokers share: they check a batch before it is written, and wake those that wait for it
afterwards.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

from twisted.internet.defer import Deferred

from kgateway.broker.partition.admission import check_batch, check_batch_in_steps, check_header
from kgateway.broker.partition.listeners import Listeners
from kgateway.broker.partition.producer_state import ProducerTable, WrittenBatch
from kgateway.cluster.partition import EARLIEST_OFFSET, Aborted, Appended, Origin
from kgateway.cluster.view import Topic
from kgateway.interfaces import Cancel
from kgateway.records.batch import (
    NO_TIMESTAMP,
    TRANSACTIONAL_BIT,
    Batch,
    BatchHeader,
    last_header,
    stamped,
)
from kgateway.records.control import read_marker
from kgateway.records.slices import Steps
from kgateway.wire.errors import ErrorCode, KafkaError
from kgateway.wire.types import Buffer

# In Python 3.11 a look-up in an enum costs as much as three calls.
_COORDINATOR, _CLIENT, _ENROLLED, _VALIDATED = Origin.COORDINATOR, Origin.CLIENT, Origin.ENROLLED, Origin.VALIDATED


class PartitionBase(ABC):
    """
    A partition that this gateway leads; subclasses know where its batches are stored.
    """

    def __init__(self, topic: Topic, index: int, now_ms: Callable[[], int], producers: ProducerTable) -> None:
        self.topic = topic
        self.index = index
        self.leader_epoch = topic.partitions[index].leader_epoch
        self.log_start = self.log_end = EARLIEST_OFFSET
        self.lost: KafkaError | None = None
        self._name = f"{topic.name}-{index}"
        self._now_ms = now_ms
        self._producers = producers
        self._listeners = Listeners()

    @property
    @abstractmethod
    def high_watermark(self) -> int: ...

    @abstractmethod
    def _write(self, batch: Batch) -> None:
        """
        Write the batch at the end of the log and move `log_end`. Raises KafkaError if it cannot be written.
        """

    @abstractmethod
    async def _raise_log_start(self, offset: int) -> None:
        """
        Delete everything before this offset, durably.
        """

    def _after_write(self) -> None:
        """
        Called after each `_write`: wakes the listeners. Partitions whose batches cannot be read yet override it.
        """
        self._listeners.wake()

    def _when_stored(self, offset: int) -> Deferred[None] | None:
        """
        `None` if everything before the offset is stored, else a Deferred that fires when it is.
        """
        return None

    def _when_committed(self, offset: int) -> Deferred[None] | None:
        """
        `None` if everything before the offset is committed, else a Deferred that fires when it is.
        """
        return None

    def set_topic(self, topic: Topic) -> None:
        self.topic = topic

    def validate(self, batch: Batch) -> Steps[None]:
        return check_batch_in_steps(batch, self.topic.config, self._now_ms(), self._name)

    def append(self, batch: Batch, origin: Origin, client_id: str | None = None) -> Appended:
        if self.lost:
            self._check_led()
        now_ms, config = self._now_ms(), self.topic.config
        if origin is not _COORDINATOR:
            if origin is _CLIENT or origin is _ENROLLED:
                check_batch(batch, config, now_ms, self._name)
            else:
                check_header(batch, config)
            if batch.header.attributes & TRANSACTIONAL_BIT and (origin is _CLIENT or origin is _VALIDATED):
                self._check_enrolled(batch.header)
        elif batch.header.is_control:
            return self._append_marker(batch, now_ms)
        return self._append(batch, now_ms)

    def _append_marker(self, batch: Batch, now_ms: int) -> Appended:
        marker = read_marker(batch)
        if marker:
            self._producers.check_marker(batch.header, marker)
        appended = self._append(batch, now_ms)
        self._producers.transactions.drop_committed_markers(self.high_watermark)
        return appended

    def _append(self, batch: Batch, now_ms: int) -> Appended:
        by_append = self.topic.config.stamps
        repeated = self._check_producer(batch.header, now_ms) if batch.header.producer_id >= 0 else None
        if repeated:
            append_time_ms = repeated.timestamp_ms if by_append else NO_TIMESTAMP
            end = repeated.base_offset + batch.header.last_offset_delta + 1
            stored, committed = self._when_stored(end), self._when_committed(end)
            return Appended(repeated.base_offset, append_time_ms, self.log_start, stored, committed)
        if by_append:
            batch = stamped(batch, now_ms)
        base_offset = self.log_end
        self._write(batch)
        if batch.header.producer_id >= 0:
            self._producers.update(batch, base_offset, now_ms)
        self._after_write()
        end = self.log_end
        append_time_ms = now_ms if by_append else NO_TIMESTAMP
        return Appended(base_offset, append_time_ms, self.log_start, self._when_stored(end), self._when_committed(end))

    def delete_before(self, offset: int) -> Deferred[int]:
        return Deferred.fromCoroutine(self._delete_before(offset))

    async def _delete_before(self, offset: int) -> int:
        self._check_led()
        high_watermark = self.high_watermark
        if not 0 <= offset <= high_watermark:
            reason = f"the log cannot begin with offset {offset}: its high watermark is {high_watermark}"
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, reason)
        if offset > self.log_start:
            await self._raise_log_start(offset)
        return self.log_start

    def watch(self, listener: Callable[[], None]) -> Cancel:
        return self._listeners.add(listener)

    def producers(self) -> ProducerTable:
        return self._producers

    def lose(self, why: KafkaError) -> None:
        """
        Refuse every further request with this error: the partition is led elsewhere, deleted or offline, or the gateway
        stops.
        """
        self.lost = why
        self._listeners.wake()

    def _check_led(self) -> None:
        if self.lost:
            raise KafkaError(self.lost.code, self.lost.message)  # a fresh one: each collects the traceback of its raise

    def _stable(self, high_watermark: int) -> int:
        transactions = self._producers.transactions
        if not transactions.any_undecided:  # nearly always
            return high_watermark
        return transactions.stable(self.log_start, high_watermark)

    def _aborted(self, offset: int, found: Sequence[Buffer]) -> list[Aborted]:
        aborted = self._producers.transactions.aborted
        if not (found and aborted.any_from(offset)):
            return []
        reaching = aborted.reaching(offset, last_header(found[-1]).last_offset + 1)
        return [Aborted(transaction.producer_id, transaction.first_offset) for transaction in reaching]

    def _check_enrolled(self, header: BatchHeader) -> None:
        if not self._producers.has_open(header.producer_id, header.producer_epoch):
            producer = f"producer {header.producer_id} in epoch {header.producer_epoch}"
            raise KafkaError(ErrorCode.INVALID_TXN_STATE, f"{self._name} is not part of a transaction of {producer}")

    def _check_offset(self, offset: int) -> None:
        if not self.log_start <= offset <= self.log_end:
            reason = f"offset {offset} is not in the log, which ranges from {self.log_start} to {self.log_end}"
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, reason)

    def _check_producer(self, header: BatchHeader, now_ms: int) -> WrittenBatch | None:
        self._producers.expire(now_ms, header.producer_id)
        return self._producers.check_sequence(header)
