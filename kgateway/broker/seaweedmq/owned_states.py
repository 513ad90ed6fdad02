"""
The internal topics in which coordinators keep their state, as the gateway has them that owns the topics of a cluster.
"""

from twisted.internet.defer import CancelledError, Deferred
from twisted.python.failure import Failure

from kgateway.broker.patience import end_of
from kgateway.broker.seaweed.chain_partition import ChainPartition
from kgateway.broker.seaweedmq.exported_offsets import ExportedOffsets, ExportingStateLog
from kgateway.broker.seaweedmq.openings import Openings
from kgateway.broker.seaweedmq.state_topics import StateTopics
from kgateway.broker.seaweedmq.topics import Stored
from kgateway.broker.state_log import StateLog
from kgateway.cluster.view import Topic
from kgateway.coordinating.places import STATE_TOPICS
from kgateway.security.permissions import Resource
from kgateway.wire.uuids import Uuid


class OwnedStates:
    """
    Under one epoch.
    """

    def __init__(self, states: StateTopics, openings: Openings, offsets: ExportedOffsets) -> None:
        self._states = states
        self._openings = openings
        self._offsets = offsets
        self._logs: dict[tuple[Uuid, int], StateLog] = {}
        self._new: dict[Uuid, Deferred[None]] = {}  # topics that were made here: when they are kept

    def add(self, topic: Topic) -> Stored:
        """
        A new one, at once; what is written to it waits until it is kept.
        """
        stored = self._states.stored(topic)
        kept = self._new[topic.id] = Deferred.fromCoroutine(self._states.keep_new(stored))
        for index in range(len(topic.partitions)):
            ready: Deferred[None] = Deferred()
            kept.addBoth(_pass_on, ready)
            self._openings.add(self._states.fresh(topic, index, ready))
        kept.addErrback(lambda failure: failure.trap(CancelledError))
        return stored

    async def keep(self, stored: Stored) -> None:
        """
        Write what a topic is like now; after that it is there, if it is new.
        """
        if stored.kept.id in self._new:
            await end_of(self._new[stored.kept.id])
        await self._states.keep(stored)

    def log(self, partition: ChainPartition) -> StateLog:
        """
        The partition as the log of a coordinator.
        """
        key = partition.topic.id, partition.index
        found = self._logs.get(key)
        if found is None or found.is_lost:
            kept = partition, self._states.snapshots(partition), partition.now_ms
            is_of_groups = partition.topic.name == STATE_TOPICS[Resource.GROUP]
            found = ExportingStateLog(*kept, self._offsets) if is_of_groups else StateLog(*kept)
            self._logs[key] = found
        return found

    async def opened(self, topic: Topic, index: int) -> StateLog:
        """
        A partition as the log of a coordinator, once it is open.
        """
        partition = await self._openings.opened(topic, index)
        assert isinstance(partition, ChainPartition)
        return self.log(partition)

    async def delete(self, name: str) -> None:
        """
        Remove one with all that is in it.
        """
        await self._states.delete(name)

    def forget(self, topic: Topic) -> None:
        """
        The topic is there no more.
        """
        self._keep_no_more(topic.id)
        for index in range(len(topic.partitions)):
            self._logs.pop((topic.id, index), None)

    def settle(self) -> Deferred[None]:
        """
        See to it that what was committed is in files for others, too.
        """
        return self._offsets.settle()

    def lose(self) -> None:
        """
        None of them is ours any more.
        """
        self._logs.clear()
        self._offsets.lose()
        for topic_id in tuple(self._new):
            self._keep_no_more(topic_id)

    def _keep_no_more(self, topic_id: Uuid) -> None:
        if kept := self._new.pop(topic_id, None):
            kept.cancel()


def _pass_on(outcome: Failure | None, ready: Deferred[None]) -> Failure | None:
    if isinstance(outcome, Failure):
        ready.errback(outcome.value)
    else:
        ready.callback(None)
    return outcome
