"""
A broker of one node that keeps all in memory: for tests and for trying things out, and the reference for the others.

What it does is what each broker must do. The shared tests say so of every one, and of this first.
"""

from collections.abc import Callable
from dataclasses import replace
from itertools import count

from twisted.internet.defer import Deferred, execute, fail, succeed
from zope.interface import implementer

from kgateway.broker.memory_partition import MemoryPartition
from kgateway.broker.producers import EXPIRY_MS
from kgateway.broker.state_log import STATE_TOPICS, MemorySnapshots, StateLog, place_of
from kgateway.broker.waiters import Waiters
from kgateway.cluster.view import ClusterView, NewTopic, Node, PartitionState, Topic
from kgateway.interfaces import Cancel, IBroker, IPeers
from kgateway.security.permissions import Resource
from kgateway.wire.errors import ErrorCode, KafkaError
from kgateway.wire.schema import Message
from kgateway.wire.uuids import Uuid

STATE_PARTITIONS = 8
_FIRST_EPOCH = 0


@implementer(IPeers)
class NoPeers:
    """
    The peers of a lone gateway.
    """

    def ask(self, node: Node, request: Message, version: int) -> Deferred[Message]:
        return fail(KafkaError(ErrorCode.BROKER_NOT_AVAILABLE, f"there is no node {node.id}: this gateway is alone"))


@implementer(IBroker)
class MemoryBroker:
    """
    Has each partition itself, in its first and only leader epoch.
    """

    description = "records in memory, gone when this process ends"
    folder: str | None = None

    def __init__(self, *, node_id: int = 1, now_ms: Callable[[], int], producer_expiry_ms: int = EXPIRY_MS) -> None:
        self.node_id = node_id
        self.peers = NoPeers()
        self._now_ms = now_ms
        self._producer_expiry_ms = producer_expiry_ms
        self._view = ClusterView(cluster_id=str(Uuid.random()), nodes=(Node(node_id),), controller_id=node_id)
        self._partitions: dict[Uuid, list[MemoryPartition]] = {}
        self._state_logs: dict[tuple[Uuid, int], StateLog] = {}
        self._producer_ids = count()
        self._waiters = Waiters()

    def start(self) -> Deferred[None]:
        return succeed(None)

    def stop(self) -> Deferred[None]:
        return succeed(None)

    def view(self) -> ClusterView:
        return self._view

    def watch(self, listener: Callable[[], None]) -> Cancel:
        return self._waiters.add(listener)

    def partition(self, topic_id: Uuid, index: int) -> MemoryPartition:
        partitions = self._partitions.get(topic_id)
        if partitions is None:
            raise _unknown(topic_id)
        if not 0 <= index < len(partitions):
            topic = partitions[0].topic
            reason = f"topic {topic.name} has no partition {index}, but {len(partitions)} from 0 on"
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, reason)
        return partitions[index]

    def coordinator(self, resource: Resource, key: str) -> StateLog:
        name = STATE_TOPICS[resource]
        topic = self._view.topics.get(name) or self._create(NewTopic(name, STATE_PARTITIONS, internal=True))
        index = place_of(key, len(topic.partitions))
        found = self._state_logs.get((topic.id, index))
        if found is None:
            found = StateLog(self.partition(topic.id, index), MemorySnapshots(), self._now_ms)
            self._state_logs[topic.id, index] = found
        return found

    def create_topic(self, new: NewTopic) -> Deferred[Topic]:
        return execute(self._create, new)

    def delete_topic(self, topic_id: Uuid) -> Deferred[None]:
        return execute(self._delete, topic_id)

    def add_partitions(self, topic_id: Uuid, partition_count: int) -> Deferred[Topic]:
        return execute(self._grow, topic_id, partition_count)

    def new_producer_id(self) -> Deferred[int]:
        return succeed(next(self._producer_ids))

    def _create(self, new: NewTopic) -> Topic:
        if new.name in self._view.topics:
            raise KafkaError(ErrorCode.TOPIC_ALREADY_EXISTS, f"there is a topic {new.name} already")
        if new.partition_count < 1:
            reason = f"a topic has one partition at least, and {new.name} should get {new.partition_count}"
            raise KafkaError(ErrorCode.INVALID_PARTITIONS, reason)
        partitions = self._led(new.partition_count)
        return self._become(Topic(Uuid.random(), new.name, partitions, new.config, new.internal))

    def _grow(self, topic_id: Uuid, partition_count: int) -> Topic:
        topic = self._topic(topic_id)
        if partition_count <= len(topic.partitions):
            reason = f"topic {topic.name} has {len(topic.partitions)} partitions; {partition_count} are not more"
            raise KafkaError(ErrorCode.INVALID_PARTITIONS, reason)
        return self._become(replace(topic, partitions=self._led(partition_count)))

    def _delete(self, topic_id: Uuid) -> None:
        topic = self._topic(topic_id)
        self._view = self._view.without_topic(topic)
        for index in range(len(topic.partitions)):
            self._state_logs.pop((topic_id, index), None)
        gone = KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"topic {topic.name} was deleted")
        for partition in self._partitions.pop(topic_id):
            partition.lose(gone)
        self._waiters.wake()

    def _topic(self, topic_id: Uuid) -> Topic:
        topic = self._view.topics_by_id.get(topic_id)
        if topic is None:
            raise _unknown(topic_id)
        return topic

    def _led(self, partition_count: int) -> tuple[PartitionState, ...]:
        return (PartitionState(self.node_id, _FIRST_EPOCH, (self.node_id,), (self.node_id,)),) * partition_count

    def _become(self, topic: Topic) -> Topic:
        """
        The topic is now this one, be it new or changed.
        """
        partitions = self._partitions.setdefault(topic.id, [])
        for partition in partitions:
            partition.topic = topic
        for index in range(len(partitions), len(topic.partitions)):
            made = MemoryPartition(topic, index, now_ms=self._now_ms, producer_expiry_ms=self._producer_expiry_ms)
            partitions.append(made)
        self._view = self._view.with_topic(topic)
        self._waiters.wake()
        return topic


def _unknown(topic_id: Uuid) -> KafkaError:
    return KafkaError(ErrorCode.UNKNOWN_TOPIC_ID, f"there is no topic with the id {topic_id}")
