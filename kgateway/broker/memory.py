"""
A broker of one node with its records in memory: for tests and for trying things out, and the reference for the others.
The shared tests state what each broker must do, this one first of all.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import count
from math import inf

from twisted.internet.defer import Deferred, execute, succeed
from twisted.internet.interfaces import IReactorTime
from zope.interface import implementer

from kgateway.broker.base import STATE_PARTITIONS, SingleNodeBroker, no_topic_with_id, topic_deleted
from kgateway.broker.partition.base import PartitionBase
from kgateway.broker.partition.batch_cache import BatchCache
from kgateway.broker.partition.producer_state import EXPIRY_MS, ProducerTable
from kgateway.broker.partition.retention import (
    CHECK_MS,
    Deletable,
    LogExtent,
    RetentionRounds,
    expired,
    retention_limits,
)
from kgateway.broker.partition.timestamp_search import find_max_time, find_time
from kgateway.broker.state_log import MemorySnapshots, StateLog
from kgateway.cluster.config_resource import Change, ConfigResource, changed
from kgateway.cluster.partition import EARLIEST_OFFSET, DiskUsage, EpochEnd, Isolation, Read, TimestampAndOffset
from kgateway.cluster.view import NewTopic, Topic
from kgateway.coordination.placement import STATE_TOPICS
from kgateway.interfaces import IBroker, IPartition
from kgateway.records.batch import Batch, placed, read_batch, read_header
from kgateway.security.permissions import Resource
from kgateway.topic_partition import PartitionId
from kgateway.wire.errors import KafkaError
from kgateway.wire.types import Buffer
from kgateway.wire.uuids import Uuid


@implementer(IPartition)
class MemoryPartition(PartitionBase):
    """
    A partition whose log is a list of batches; what is appended is committed at once.
    """

    def __init__(self, topic: Topic, index: int, *, now_ms: Callable[[], int], producer_expiry_ms: int) -> None:
        super().__init__(topic, index, now_ms, ProducerTable(producer_expiry_ms))
        self._tail: BatchCache[Buffer] = BatchCache(EARLIEST_OFFSET)  # all batches
        self._changed_ms = now_ms()

    @property
    def high_watermark(self) -> int:
        return self.log_end

    @property
    def last_stable(self) -> int:
        return self._stable(self.log_end)

    @property
    def size(self) -> int:
        return self._tail.size

    def _write(self, batch: Batch) -> None:
        base_offset = self.log_end
        data = b"".join(placed(batch, base_offset, self.leader_epoch))  # a copy, so that the request's frame is freed
        self.log_end += batch.header.last_offset_delta + 1
        self._tail.add(data, base_offset, self.log_end)
        self._changed_ms = self._now_ms()

    def read(self, offset: int, max_bytes: int, isolation: Isolation, at_least_one: bool, due: float = inf) -> Read:
        if self.lost or offset != self.log_end:  # there is nothing to check for a consumer that waits at the end
            self._check_led()
            self._check_offset(offset)
        is_read_committed = isolation is Isolation.READ_COMMITTED
        batches: list[Buffer] = []
        stable, size = self.last_stable, 0
        end = stable if is_read_committed else self.log_end
        if offset < end:
            batches, size = self._tail.read(offset, max_bytes, at_least_one, end)
        aborted = self._aborted(offset, batches) if is_read_committed else None
        return Read(batches, size, self.log_end, stable, self.log_start, aborted)

    def find_time(self, timestamp: int) -> TimestampAndOffset | None:
        self._check_led()
        return find_time(self._batches(), timestamp, self.log_start)

    def find_max_time(self) -> TimestampAndOffset | None:
        self._check_led()
        return find_max_time(self._batches(), self.log_start)

    def _batches(self) -> Iterator[Batch]:
        return map(read_batch, self._tail.batches)

    def epoch_end(self, leader_epoch: int) -> EpochEnd | None:
        self._check_led()
        return EpochEnd(leader_epoch, self.log_end) if leader_epoch == self.leader_epoch else None

    async def _raise_log_start(self, offset: int) -> None:
        self.log_start = offset
        self._tail.cut(offset)
        self._producers.transactions.aborted.begin_at(offset)

    def expire(self) -> Deferred[None]:
        return Deferred.fromCoroutine(self._expire())

    async def _expire(self) -> None:
        self._check_led()
        limits, log = retention_limits(self.topic), LogExtent(self._tail.size, self.log_start, self.high_watermark)
        if limits.are_none:
            return
        kept = self._tail.batches
        count = expired(map(self._piece, kept), log, limits, self._now_ms())
        if count:
            await self._raise_log_start(self._piece(kept[count - 1]).end)

    def _piece(self, data: Buffer) -> Deletable:
        header = read_header(data)
        return Deletable(header.size, header.last_offset + 1, header.max_timestamp, self._changed_ms)

    def lose(self, why: KafkaError) -> None:
        self._tail = BatchCache(self.log_end)
        super().lose(why)


_FIRST_EPOCH = 0


@implementer(IBroker)
class MemoryBroker(SingleNodeBroker):
    """
    A broker whose partitions stay in their first leader epoch.
    """

    description = "records in memory, gone when this process ends"
    folder: str | None = None
    log_dir = "memory"

    def __init__(
        self,
        *,
        node_id: int = 1,
        now_ms: Callable[[], int],
        producer_expiry_ms: int = EXPIRY_MS,
        offsets_partitions: int = STATE_PARTITIONS,
        topic_defaults: Mapping[str, str] | None = None,
        clock: IReactorTime | None = None,
        retention_check_ms: int = CHECK_MS,
    ) -> None:
        super().__init__(node_id, str(Uuid.random()), offsets_partitions, topic_defaults)
        self._clock = clock  # without one there is no retention
        self._retention_check_ms = retention_check_ms
        self._rounds: RetentionRounds | None = None
        self._now_ms = now_ms
        self._producer_expiry_ms = producer_expiry_ms
        self._partitions: dict[Uuid, list[MemoryPartition]] = {}
        self._state_logs: dict[PartitionId, StateLog] = {}
        self._producer_ids = count()

    def start(self) -> Deferred[None]:
        if self._clock:
            self._rounds = RetentionRounds(self._clock, self._retention_check_ms, self._partition_ids, self._partition)
        return succeed(None)

    def stop(self) -> Deferred[None]:
        if self._rounds:
            self._rounds.stop()
        return succeed(None)

    def _partition_ids(self) -> Deferred[list[PartitionId]]:
        partitions = self._partitions.items()
        return succeed([PartitionId(topic_id, index) for topic_id, all_ in partitions for index in range(len(all_))])

    def _partition(self, name: PartitionId) -> MemoryPartition:
        return self.partition(*name)

    def partition(self, topic_id: Uuid, index: int) -> MemoryPartition:
        partitions = self._partitions.get(topic_id)
        if partitions is None:
            raise no_topic_with_id(topic_id)
        if not 0 <= index < len(partitions):
            raise partitions[0].topic.no_partition(index)
        return partitions[index]

    def measure(self, partitions: Iterable[PartitionId]) -> Deferred[DiskUsage]:
        sizes = {
            PartitionId(key, index): topic[index].size
            for key, index in partitions
            if (topic := self._partitions.get(key))
        }
        return succeed(DiskUsage(sizes))

    def create_topic(self, new: NewTopic) -> Deferred[Topic]:
        return execute(self._create, new)

    def delete_topic(self, topic_id: Uuid) -> Deferred[None]:
        return execute(self._delete, topic_id)

    def add_partitions(self, topic_id: Uuid, partition_count: int) -> Deferred[Topic]:
        return execute(self._grow, topic_id, partition_count)

    def new_producer_id(self) -> Deferred[int]:
        return succeed(next(self._producer_ids))

    def _create_state_topic(self, resource: Resource) -> Topic:
        return self._create(NewTopic(STATE_TOPICS[resource], self._state_partitions[resource], internal=True))

    def _state_log(self, topic: Topic, index: int) -> StateLog:
        found = self._state_logs.get(PartitionId(topic.id, index))
        if found is None:
            found = StateLog(self.partition(topic.id, index), MemorySnapshots(), self._now_ms)
            self._state_logs[PartitionId(topic.id, index)] = found
        return found

    def _create(self, new: NewTopic) -> Topic:
        return self._open_and_show(self._new_topic(new, _FIRST_EPOCH))

    def _grow(self, topic_id: Uuid, partition_count: int) -> Topic:
        return self._open_and_show(self._grown(self._topic(topic_id), partition_count, _FIRST_EPOCH))

    def _delete(self, topic_id: Uuid) -> None:
        topic = self._topic(topic_id)
        for index in range(len(topic.partitions)):
            self._state_logs.pop(PartitionId(topic_id, index), None)
        partitions = self._partitions.pop(topic_id)
        self._view = self._view.without_topic(topic)
        for partition in partitions:
            partition.lose(topic_deleted(topic))
        self._view_listeners.wake()

    async def _configure(self, name: str, change: Change) -> None:
        topic = self._configured(name, change)
        if topic is not self._view.topics[name]:
            self._open_and_show(topic)

    def _change_overrides(self, resource: ConfigResource, change: Change) -> Deferred[None]:
        return execute(lambda: self._show_overrides(changed(self._view.overrides, resource, change)))

    def _apply_config(self, topic: Topic) -> None:
        for partition in self._partitions.get(topic.id, ()):
            partition.set_topic(topic)

    def _open_and_show(self, topic: Topic) -> Topic:
        self._apply_config(topic)
        partitions = self._partitions.setdefault(topic.id, [])
        for index in range(len(partitions), len(topic.partitions)):
            partition = MemoryPartition(topic, index, now_ms=self._now_ms, producer_expiry_ms=self._producer_expiry_ms)
            partitions.append(partition)
        return self._show_topic(topic)
