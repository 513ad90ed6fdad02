"""
What a partition does with a batch before it is written, wherever that is: the same for every broker.
"""

from collections.abc import Callable, Sequence

from twisted.internet.defer import Deferred

from kgateway.broker.admission import admission, check_admission, check_header
from kgateway.broker.producers import ProducerTable, Written
from kgateway.broker.waiters import Waiters
from kgateway.cluster.partition import EARLIEST_OFFSET, Aborted, Appended, Origin
from kgateway.cluster.view import Topic
from kgateway.interfaces import Cancel, IPartition
from kgateway.records.batch import NO_TIMESTAMP, Batch, BatchHeader, TimestampType, last_header, stamped
from kgateway.records.control import read_marker
from kgateway.records.steps import Steps
from kgateway.wire.errors import ErrorCode, KafkaError
from kgateway.wire.types import Buffer


class OwnedPartition:
    """
    A partition of this gateway. What follows from it says how batches are kept.
    """

    def __init__(self, topic: Topic, index: int, now_ms: Callable[[], int], producers: ProducerTable) -> None:
        self.topic = topic
        self.index = index
        self.leader_epoch = topic.partitions[index].leader_epoch
        self.log_start = self.log_end = EARLIEST_OFFSET
        self.lost: KafkaError | None = None
        self._place = f"{topic.name}-{index}"
        self._now_ms = now_ms
        self._producers = producers
        self._waiters = Waiters()

    def become(self, topic: Topic) -> None:
        """
        The topic has another config, or more partitions.
        """
        self.topic = topic

    def judge(self, batch: Batch) -> Steps[None]:
        return admission(batch, self.topic.config, self._now_ms(), self._place)

    def append(self, batch: Batch, origin: Origin, client_id: str | None = None) -> Appended:
        self._check_owned()
        now_ms, config = self._now_ms(), self.topic.config
        if origin is not Origin.COORDINATOR:
            if origin is Origin.CLIENT or origin is Origin.ADDED:
                check_admission(batch, config, now_ms, self._place)
            else:
                check_header(batch, config)
            if batch.header.is_transactional and (origin is Origin.CLIENT or origin is Origin.JUDGED):
                self._check_joined(batch.header)
        elif batch.header.is_control:
            return self._append_marker(batch, now_ms)
        return self._append(batch, now_ms)

    def _append_marker(self, batch: Batch, now_ms: int) -> Appended:
        marker = read_marker(batch)
        if marker:
            self._producers.check_marker(batch.header, marker)
        appended = self._append(batch, now_ms)
        self._producers.transactions.settle(IPartition(self).high_watermark)
        return appended

    def _append(self, batch: Batch, now_ms: int) -> Appended:
        by_append = self.topic.config.timestamp_type is TimestampType.LOG_APPEND_TIME
        repeated = self._repeated(batch.header, now_ms)
        if repeated:
            append_time_ms = repeated.timestamp_ms if by_append else NO_TIMESTAMP
            end = repeated.base_offset + batch.header.last_offset_delta + 1
            stored, safe = self._when_stored(end), self._when_safe(end)
            return Appended(repeated.base_offset, append_time_ms, self.log_start, stored, safe)
        if by_append:
            batch = stamped(batch, now_ms)
        base_offset = self.log_end
        self._keep(batch)
        if batch.header.producer_id >= 0:
            self._producers.note(batch, base_offset, now_ms)
        self._moved()
        end = self.log_end
        append_time_ms = now_ms if by_append else NO_TIMESTAMP
        return Appended(base_offset, append_time_ms, self.log_start, self._when_stored(end), self._when_safe(end))

    def delete_before(self, offset: int) -> Deferred[int]:
        return Deferred.fromCoroutine(self._delete_before(offset))

    async def _delete_before(self, offset: int) -> int:
        self._check_owned()
        high_watermark = IPartition(self).high_watermark  # each of the classes that follow from this has its own
        if not 0 <= offset <= high_watermark:
            reason = f"the log cannot begin with offset {offset}, for its high watermark is {high_watermark}"
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, reason)
        if offset > self.log_start:
            await self._begin_at(offset)
        return self.log_start

    async def _begin_at(self, offset: int) -> None:
        """
        Let the log begin with this offset, for good.
        """
        raise NotImplementedError

    def watch(self, listener: Callable[[], None]) -> Cancel:
        return self._waiters.add(listener)

    def producers(self) -> ProducerTable:
        return self._producers

    def lose(self, why: KafkaError) -> None:
        """
        Be no partition of this gateway any more.
        """
        self.lost = why
        self._waiters.wake()

    def _keep(self, batch: Batch) -> None:
        """
        Write the batch at the end of the log, and move that; a KafkaError where it cannot be written.
        """
        raise NotImplementedError

    def _moved(self) -> None:
        """
        A batch was kept. Where it can be read at once, that is told at once.
        """
        self._waiters.wake()

    def _when_stored(self, offset: int) -> Deferred[None] | None:
        """
        `None` if all before the offset is stored, else what fires when it is.
        """
        return None

    def _when_safe(self, offset: int) -> Deferred[None] | None:
        """
        `None` if all before the offset is safe, else what fires when it is.
        """
        return None

    def _check_owned(self) -> None:
        if self.lost:
            raise KafkaError(self.lost.code, self.lost.message)  # a fresh one: each collects the traceback of its raise

    def _stable(self, high_watermark: int) -> int:
        """
        The last stable offset, where this is the high watermark.
        """
        transactions = self._producers.transactions
        if not transactions.any_undecided:  # nearly always
            return high_watermark
        return transactions.stable(self.log_start, high_watermark)

    def _aborted(self, offset: int, found: Sequence[Buffer]) -> list[Aborted]:
        """
        The transactions that were aborted and reach into these batches, of which a consumer asks from this offset on.
        """
        aborted = self._producers.transactions.aborted
        if not (found and aborted.any_from(offset)):
            return []
        reaching = aborted.reaching(offset, last_header(found[-1]).last_offset + 1)
        return [Aborted(one.producer_id, one.first_offset) for one in reaching]

    def _check_joined(self, header: BatchHeader) -> None:
        if not self._producers.has_open(header.producer_id, header.producer_epoch):
            who = f"producer {header.producer_id} in epoch {header.producer_epoch}"
            raise KafkaError(ErrorCode.INVALID_TXN_STATE, f"{self._place} is no part of a transaction of {who}")

    def _check_offset(self, offset: int) -> None:
        if not self.log_start <= offset <= self.log_end:
            reason = f"offset {offset} is not in the log, which goes from {self.log_start} to {self.log_end}"
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, reason)

    def _repeated(self, header: BatchHeader, now_ms: int) -> Written | None:
        if header.producer_id < 0:
            return None
        self._producers.expire(now_ms, header.producer_id)
        return self._producers.repeated(header)
