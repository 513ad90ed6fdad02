"""
A partition whose log is a list of batches in memory.

Beside the batches stand two more lists: at which offset each begins, and how many bytes come before it. By the one a
read finds where to begin, by the other where to end, each by bisection.
"""

from bisect import bisect_right
from collections.abc import Callable

from zope.interface import implementer

from kgateway.broker.admission import check_admission
from kgateway.broker.memory_times import TimeIndex
from kgateway.broker.producers import ProducerTable, Written
from kgateway.broker.waiters import Waiters
from kgateway.cluster.partition import EARLIEST_OFFSET, Aborted, Appended, EpochEnd, Found, Isolation, Origin, Read
from kgateway.cluster.view import Topic
from kgateway.interfaces import Cancel, IPartition
from kgateway.records.batch import NO_TIMESTAMP, Batch, BatchHeader, TimestampType, placed, stamped
from kgateway.wire.errors import ErrorCode, KafkaError
from kgateway.wire.types import Buffer


@implementer(IPartition)
class MemoryPartition:
    """
    What is appended is safe, and can be read, at once; and as there are no transactions it is stable, too.
    """

    def __init__(self, topic: Topic, index: int, *, now_ms: Callable[[], int], producer_expiry_ms: int) -> None:
        self.topic = topic
        self.index = index
        self.leader_epoch = topic.partitions[index].leader_epoch
        self.log_start = self.log_end = EARLIEST_OFFSET
        self.lost: KafkaError | None = None
        self._now_ms = now_ms
        self._producers = ProducerTable(producer_expiry_ms)
        self._waiters = Waiters()
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

    def append(self, batch: Batch, origin: Origin) -> Appended:
        self._check_owned()
        now_ms, config = self._now_ms(), self.topic.config
        if origin is Origin.CLIENT:
            check_admission(batch, config, now_ms)
            if batch.header.is_transactional:
                raise KafkaError(ErrorCode.INVALID_TXN_STATE, "this broker has no transactions")
        by_append = config.timestamp_type is TimestampType.LOG_APPEND_TIME
        repeated = self._repeated(batch.header, now_ms)
        if repeated:
            append_time_ms = repeated.timestamp_ms if by_append else NO_TIMESTAMP
            return Appended(repeated.base_offset, append_time_ms, self.log_start)
        if by_append:
            batch = stamped(batch, now_ms)
        base_offset = self._keep(batch, now_ms)
        self._waiters.wake()
        return Appended(base_offset, now_ms if by_append else NO_TIMESTAMP, self.log_start)

    def _check_owned(self) -> None:
        if self.lost:
            raise KafkaError(self.lost.code, self.lost.message)  # a fresh one: each collects the traceback of its raise

    def _repeated(self, header: BatchHeader, now_ms: int) -> Written | None:
        if header.producer_id < 0:
            return None
        self._producers.expire(now_ms, header.producer_id)
        written = self._producers.duplicate(header)
        if written is None:
            self._producers.check(header)
        return written

    def _keep(self, batch: Batch, now_ms: int) -> int:
        header, base_offset = batch.header, self.log_end
        data = b"".join(placed(batch, base_offset, self.leader_epoch))  # a copy, which lets go of the request's frame
        self._batches.append(data)
        self._base_offsets.append(base_offset)
        self._positions.append(self._positions[-1] + len(data))
        self.log_end = base_offset + header.last_offset_delta + 1
        if header.producer_id >= 0:
            self._producers.remember(header, base_offset, now_ms)
        return base_offset

    def read(self, offset: int, max_bytes: int, isolation: Isolation, at_least_one: bool) -> Read:
        self._check_owned()
        start, end = self.log_start, self.log_end
        if not start <= offset <= end:
            reason = f"offset {offset} is not in the log, which goes from {start} to {end}"
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, reason)
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

    def watch(self, listener: Callable[[], None]) -> Cancel:
        return self._waiters.add(listener)

    def producers(self) -> ProducerTable:
        return self._producers

    def lose(self, why: KafkaError) -> None:
        """
        Be no partition of this gateway any more, and keep no records.
        """
        self.lost = why
        self._batches.clear()
        self._waiters.wake()
