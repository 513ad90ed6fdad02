"""
The internal topics in which coordinators keep their state, as the leader has them.
"""

from twisted.internet.defer import CancelledError, Deferred
from twisted.python.failure import Failure

from kgateway.broker.deferreds import when_over
from kgateway.broker.seaweed.chain.partition import ChainPartition
from kgateway.broker.seaweedmq.leader.go_offset_export import ExportingStateLog, OffsetExport
from kgateway.broker.seaweedmq.partitions.registry import ClusterPartitionRegistry
from kgateway.broker.seaweedmq.topics.catalog import StoredTopic
from kgateway.broker.seaweedmq.topics.state_topics import StateTopics
from kgateway.broker.state_log import StateLog
from kgateway.cluster.view import Topic
from kgateway.coordination.placement import STATE_TOPICS
from kgateway.security.permissions import Resource
from kgateway.topic_partition import PartitionId
from kgateway.wire.uuids import Uuid


class StateLogs:
    def __init__(self, states: StateTopics, registry: ClusterPartitionRegistry, offsets: OffsetExport) -> None:
        self._states = states
        self._registry = registry
        self._offsets = offsets
        self._logs: dict[PartitionId, StateLog] = {}
        self._new: dict[Uuid, Deferred[None]] = {}  # topics that were made here: fire when they are stored

    def add(self, topic: Topic) -> StoredTopic:
        """
        Add a new topic at once; what is written to it waits until the topic is stored.
        """
        stored = self._states.stored(topic)
        storing = self._new[topic.id] = Deferred.fromCoroutine(self._states.store_new(stored))
        for index in range(len(topic.partitions)):
            ready: Deferred[None] = Deferred()
            storing.addBoth(_pass_on, ready)
            self._registry.add(self._states.fresh(topic, index, ready))
        storing.addErrback(lambda failure: failure.trap(CancelledError))
        return stored

    async def store(self, stored: StoredTopic) -> None:
        """
        Store a topic; after that it is there, if it is new.
        """
        if stored.file.id in self._new:
            await when_over(self._new[stored.file.id])
        await self._states.store(stored)

    def log(self, partition: ChainPartition) -> StateLog:
        key = PartitionId(partition.topic.id, partition.index)
        found = self._logs.get(key)
        if found is None or found.is_lost:
            arguments = partition, self._states.snapshots(partition), partition.now_ms
            is_of_groups = partition.topic.name == STATE_TOPICS[Resource.GROUP]
            found = ExportingStateLog(*arguments, self._offsets) if is_of_groups else StateLog(*arguments)
            self._logs[key] = found
        return found

    async def opened(self, topic: Topic, index: int) -> StateLog:
        """
        A partition as the log of a coordinator, once it is open.
        """
        partition = await self._registry.opened(topic, index)
        assert isinstance(partition, ChainPartition)
        return self.log(partition)

    async def delete(self, name: str) -> None:
        await self._states.delete(name)

    def forget(self, topic: Topic) -> None:
        self._cancel_storing(topic.id)
        for index in range(len(topic.partitions)):
            self._logs.pop(PartitionId(topic.id, index), None)

    def flush(self) -> Deferred[None]:
        """
        Bring what was committed into the files of the Go gateway.
        """
        return self._offsets.flush()

    def lose(self) -> None:
        self._logs.clear()
        self._offsets.lose()
        for topic_id in tuple(self._new):
            self._cancel_storing(topic_id)

    def _cancel_storing(self, topic_id: Uuid) -> None:
        if storing := self._new.pop(topic_id, None):
            storing.cancel()


def _pass_on(outcome: Failure | None, ready: Deferred[None]) -> Failure | None:
    if isinstance(outcome, Failure):
        ready.errback(outcome.value)
    else:
        ready.callback(None)
    return outcome
