"""
A broker of one node that keeps all in memory: for tests and for trying things out, and the reference for the others.

What it does is what each broker must do. The shared tests say so of every one, and of this first.
"""

from collections.abc import Callable, Mapping
from itertools import count

from twisted.internet.defer import Deferred, execute, succeed
from twisted.internet.interfaces import IReactorTime
from zope.interface import implementer

from kgateway.broker.lone import STATE_PARTITIONS, LoneBroker, deleted, unknown
from kgateway.broker.memory_partition import MemoryPartition
from kgateway.broker.producers import EXPIRY_MS
from kgateway.broker.retention_rounds import CHECK_MS, RetentionRounds
from kgateway.broker.state_log import MemorySnapshots, StateLog
from kgateway.cluster.config_resource import Change, ConfigResource, changed
from kgateway.cluster.log_dir import Measured, Places
from kgateway.cluster.view import NewTopic, Topic
from kgateway.coordinating.places import STATE_TOPICS
from kgateway.interfaces import IBroker
from kgateway.security.permissions import Resource
from kgateway.wire.uuids import Uuid

_FIRST_EPOCH = 0


@implementer(IBroker)
class MemoryBroker(LoneBroker):
    """
    Has each partition in its first and only leader epoch.
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
        self._clock = clock  # without one, nothing goes by itself
        self._retention_check_ms = retention_check_ms
        self._rounds: RetentionRounds | None = None
        self._now_ms = now_ms
        self._producer_expiry_ms = producer_expiry_ms
        self._partitions: dict[Uuid, list[MemoryPartition]] = {}
        self._state_logs: dict[tuple[Uuid, int], StateLog] = {}
        self._producer_ids = count()

    def start(self) -> Deferred[None]:
        if self._clock:
            self._rounds = RetentionRounds(self._clock, self._retention_check_ms, self._places, self._at)
        return succeed(None)

    def stop(self) -> Deferred[None]:
        if self._rounds:
            self._rounds.stop()
        return succeed(None)

    def _places(self) -> Deferred[list[tuple[Uuid, int]]]:
        return succeed(
            [(key, index) for key, partitions in self._partitions.items() for index in range(len(partitions))]
        )

    def _at(self, place: tuple[Uuid, int]) -> MemoryPartition:
        return self.partition(*place)

    def partition(self, topic_id: Uuid, index: int) -> MemoryPartition:
        partitions = self._partitions.get(topic_id)
        if partitions is None:
            raise unknown(topic_id)
        if not 0 <= index < len(partitions):
            raise partitions[0].topic.no_partition(index)
        return partitions[index]

    def measure(self, places: Places) -> Deferred[Measured]:
        sizes = {
            (key, index): partitions[index].size for key, index in places if (partitions := self._partitions.get(key))
        }
        return succeed(Measured(sizes))

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
        found = self._state_logs.get((topic.id, index))
        if found is None:
            found = StateLog(self.partition(topic.id, index), MemorySnapshots(), self._now_ms)
            self._state_logs[topic.id, index] = found
        return found

    def _create(self, new: NewTopic) -> Topic:
        return self._become(self._new_topic(new, _FIRST_EPOCH))

    def _grow(self, topic_id: Uuid, partition_count: int) -> Topic:
        return self._become(self._grown(topic_id, partition_count))

    def _delete(self, topic_id: Uuid) -> None:
        topic = self._topic(topic_id)
        for index in range(len(topic.partitions)):
            self._state_logs.pop((topic_id, index), None)
        partitions = self._partitions.pop(topic_id)
        self._view = self._view.without_topic(topic)
        for partition in partitions:
            partition.lose(deleted(topic))
        self._waiters.wake()

    async def _configure(self, name: str, change: Change) -> None:
        topic = self._configured(name, change)
        if topic is not self._view.topics[name]:
            self._become(topic)

    def _change_overrides(self, resource: ConfigResource, change: Change) -> Deferred[None]:
        return execute(lambda: self._show_overrides(changed(self._view.overrides, resource, change)))

    def _tell(self, topic: Topic) -> None:
        for partition in self._partitions.get(topic.id, ()):
            partition.become(topic)

    def _become(self, topic: Topic) -> Topic:
        """
        The topic is now this one, be it new or changed.
        """
        self._tell(topic)
        partitions = self._partitions.setdefault(topic.id, [])
        for index in range(len(partitions), len(topic.partitions)):
            made = MemoryPartition(topic, index, now_ms=self._now_ms, producer_expiry_ms=self._producer_expiry_ms)
            partitions.append(made)
        return self._show_topic(topic)
