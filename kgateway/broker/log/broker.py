"""
The broker whose topics are files in a folder of this machine: the embedded log. Its topics come, grow, get other
configs, and go; the folder itself is in folder_broker.py.
"""

from twisted.internet.defer import Deferred, gatherResults
from zope.interface import implementer

from kgateway.broker.log.folder_broker import FolderBroker
from kgateway.broker.log.partition_folder import folder_of
from kgateway.broker.lone import deleted, taken
from kgateway.broker.state_log import STATE_CONFIG
from kgateway.cluster.config import TopicConfig
from kgateway.cluster.config_resource import Change
from kgateway.cluster.view import NewTopic, Topic
from kgateway.coordinating.places import STATE_TOPICS
from kgateway.interfaces import IBroker
from kgateway.security.permissions import Resource
from kgateway.wire.uuids import Uuid

_FIRST_EPOCH = 0


@implementer(IBroker)
class LogBroker(FolderBroker):
    """
    One node, whose topics change.
    """

    def _create_state_topic(self, resource: Resource) -> Topic:
        """
        Once in the life of a folder everybody waits for it.
        """
        config = TopicConfig.of(STATE_CONFIG, self._topic_defaults)
        new = NewTopic(STATE_TOPICS[resource], self._state_partitions[resource], config, internal=True)
        topic = self._new_topic(new, _FIRST_EPOCH)
        with self._changes.one_at_a_time(topic.name, taken):
            self._checkpoints.begin(topic.name)
            self._changes.keep_now(topic)
        self._show(self._view.with_topic(topic))
        return topic

    def create_topic(self, new: NewTopic) -> Deferred[Topic]:
        return Deferred.fromCoroutine(self._create(new))

    def delete_topic(self, topic_id: Uuid) -> Deferred[None]:
        return Deferred.fromCoroutine(self._delete(topic_id))

    def add_partitions(self, topic_id: Uuid, partition_count: int) -> Deferred[Topic]:
        return Deferred.fromCoroutine(self._grow(topic_id, partition_count))

    async def _create(self, new: NewTopic) -> Topic:
        topic = self._new_topic(new, _FIRST_EPOCH)
        with self._changes.one_at_a_time(new.name, taken):
            self._checkpoints.begin(new.name)
            await self._starts.begin(new.name)
            await self._upkeep.begin(new.name)
            await self._changes.keep(topic)
            return self._show_topic(topic)

    async def _grow(self, topic_id: Uuid, partition_count: int) -> Topic:
        topic = self._grown(topic_id, partition_count)
        with self._changes.one_at_a_time(topic.name):
            await self._keep_changed(topic)
        return topic

    async def _configure(self, name: str, change: Change) -> None:
        topic = self._configured(name, change)
        if topic is not self._view.topics[name]:
            with self._changes.one_at_a_time(name):
                await self._keep_changed(topic)

    async def _keep_changed(self, topic: Topic) -> None:
        """
        The topic is now this one, for good.
        """
        await self._changes.keep(topic)
        self._tell(topic)
        self._show_topic(topic)

    def _tell(self, topic: Topic) -> None:
        for index in range(len(topic.partitions)):
            if (topic.id, index) in self._openings.open:
                self._openings.open[topic.id, index].become(topic)

    async def _delete(self, topic_id: Uuid) -> None:
        topic = self._topic(topic_id)
        with self._changes.one_at_a_time(topic.name):
            await self._changes.forget(topic)
            self._view = self._view.without_topic(topic)
            gone = [self._let_go(topic, index) for index in range(len(topic.partitions))]
            self._waiters.wake()
            self._save_soon()
            await gatherResults(gone)
            await self._changes.clear(topic)

    def _let_go(self, topic: Topic, index: int) -> Deferred[None]:
        """
        Fires when no thread opens it any more.
        """
        self._state_logs.pop((topic.id, index), None)
        partition, gone = self._openings.forget(topic, index)
        self._upkeep.forget((topic.name, index))
        if partition:
            partition.lose(deleted(topic))
            gone = gatherResults([gone, partition.reshaping.run(lambda: None)]).addCallback(lambda _: None)
        self._parts.files.close_in(folder_of(self._path, topic, index))
        return gone
