"""
The topics of a SeaweedMQ cluster as the gateway serves and changes them that owns them.
"""

from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import TypeVar

from twisted.internet.defer import Deferred, succeed

from kgateway.broker.config_changes import ConfigChanges
from kgateway.broker.lone import LoneBroker
from kgateway.broker.seaweed.chain_partition import ChainPartition
from kgateway.broker.seaweedmq.forms.needed import with_form
from kgateway.broker.seaweedmq.in_kafkas_words import in_kafkas_words
from kgateway.broker.seaweedmq.layout import check_count, check_name
from kgateway.broker.seaweedmq.openings import Partition
from kgateway.broker.seaweedmq.own_changes import OwnChanges
from kgateway.broker.seaweedmq.owned import Owned
from kgateway.broker.seaweedmq.parts import Parts
from kgateway.broker.seaweedmq.topics import Stored
from kgateway.broker.state_log import StateLog
from kgateway.cluster.config import TopicConfig
from kgateway.cluster.config_resource import Change, ConfigResource
from kgateway.cluster.log_dir import Measured, Places
from kgateway.cluster.view import ClusterView, NewTopic, Topic
from kgateway.coordinating.places import STATE_TOPICS
from kgateway.security.permissions import Resource
from kgateway.wire.errors import ErrorCode, KafkaError
from kgateway.wire.uuids import Uuid

T = TypeVar("T")

NOT_OWNER = KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "another gateway owns the topics of this cluster")


class OwnedTopics(LoneBroker):
    """
    What is asked while they are another's, or not ready, is refused: clients are to come again.
    """

    _parts: Parts
    _configs: ConfigChanges

    def __init__(self, node_id: int, offsets_partitions: int, topic_defaults: Mapping[str, str] | None) -> None:
        super().__init__(node_id, "", offsets_partitions, topic_defaults)
        self._held: Owned | None = None  # while they are ours
        self._own_changes = OwnChanges()
        self._look_at: Callable[[str], None] = lambda _: None  # at what a topic is like in the cluster

    def coordinator(self, resource: Resource, key: str) -> StateLog:
        if resource is Resource.TRANSACTIONAL_ID:
            # The one answer by which every client gives up at once; others it takes for something that passes.
            raise KafkaError(
                ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
                f"{key} cannot begin: SeaweedMQ has no transactions; a gateway with a log of its own has (log:FOLDER)",
            )
        return super().coordinator(resource, key)

    def coordinators(self, resource: Resource) -> list[StateLog]:
        return [] if resource is Resource.TRANSACTIONAL_ID else super().coordinators(resource)

    def measure(self, places: Places) -> Deferred[Measured]:
        open_ones = self._held.openings.open if self._held else {}
        return succeed(Measured({place: open_ones[place].size for place in places if place in open_ones}))

    def partition(self, topic_id: Uuid, index: int) -> Partition:
        topic = self._topic(topic_id)
        if not 0 <= index < len(topic.partitions):
            raise topic.no_partition(index)
        return self._owned.openings.partition(topic, index)

    def check_topic(self, new: NewTopic) -> None:
        if new.internal and new.name in self._view.topics:
            return  # it is a coordinator's, and no topic of SeaweedMQ's
        check_name(new.name)
        check_count(new.partition_count)
        with_form(new.config, self._topic_defaults)

    def create_topic(self, new: NewTopic) -> Deferred[Topic]:
        return Deferred.fromCoroutine(_as_controller(self._create(new)))

    def delete_topic(self, topic_id: Uuid) -> Deferred[None]:
        return Deferred.fromCoroutine(_as_controller(self._delete(topic_id)))

    def add_partitions(self, topic_id: Uuid, partition_count: int) -> Deferred[Topic]:
        return Deferred.fromCoroutine(_as_controller(self._grow(topic_id, partition_count)))

    def _change_overrides(self, resource: ConfigResource, change: Change) -> Deferred[None]:
        return Deferred.fromCoroutine(_as_controller(self._change_rest(resource, change)))

    def new_producer_id(self) -> Deferred[int]:
        return Deferred.fromCoroutine(in_kafkas_words(self._parts.ids.next()))

    @property
    def _owned(self) -> Owned:
        if self._held is None:
            raise NOT_OWNER
        return self._held

    async def _change_rest(self, resource: ConfigResource, change: Change) -> None:
        self._to_change()
        await self._configs.make(resource, change)

    async def _create(self, new: NewTopic) -> Topic:
        self.check_topic(new)
        owned = self._to_change()
        new = replace(new, config=owned.with_form(new.config))
        topic = self._new_topic(new, owned.epoch)
        with self._changing(new.name):
            await owned.create(topic, new)
            self._demand_still(owned)
            self._say_if_uncompacted(topic)
            return self._show_topic(topic)

    async def _grow(self, topic_id: Uuid, partition_count: int) -> Topic:
        topic, grown = self._topic(topic_id), self._grown(topic_id, partition_count)
        owned = self._to_change()
        with self._changing(topic.name):
            await owned.grow(topic, grown)
            self._demand_still(owned)
            return self._show_topic(grown)

    async def _configure(self, name: str, change: Change) -> None:
        await _as_controller(self._configure_topic(name, change))

    async def _configure_topic(self, name: str, change: Change) -> None:
        topic, owned = self._configured(name, change), self._to_change()
        before = self._view.topics[name]
        if topic is before:
            return
        with self._changing(name):
            config = await owned.configure(topic)
            self._demand_still(owned)
            if config.cleanup_policy != before.config.cleanup_policy:
                self._say_if_uncompacted(topic)
            self._show_topic(replace(self._topic(topic.id), config=config))

    def _say_if_uncompacted(self, topic: Topic) -> None:
        """
        Programs ask for compaction whose topics are as good without it, but for their size.
        """
        if topic.config.compacts and not topic.internal:
            stays = "records go when retention lets them" if topic.config.deletes else "all its records stay"
            told = "topic {name} has cleanup.policy={policy}, but nothing on SeaweedMQ is compacted: {stays}"
            self._log.warn(told, name=topic.name, policy=",".join(topic.config.cleanup_policy), stays=stays)

    @contextmanager
    def _changing(self, name: str) -> Iterator[None]:
        """
        A change of this topic by this gateway. What there is of it when that fails is looked at afterwards.
        """
        try:
            with self._own_changes.of(name):
                yield
        except BaseException:
            self._look_at(name)
            raise

    def _to_change(self) -> Owned:
        if self._held is None:
            raise KafkaError(ErrorCode.NOT_CONTROLLER, "the topics are not this gateway's to change, or not yet")
        self._parts.demand_ownership()
        return self._held

    def _demand_still(self, owned: Owned) -> None:
        if self._held is not owned:
            raise NOT_OWNER

    def _tell(self, topic: Topic) -> None:
        open_ones = self._held.openings.open if self._held else {}
        for index in range(len(topic.partitions)):
            if (topic.id, index) in open_ones:
                open_ones[topic.id, index].become(topic)

    async def _delete(self, topic_id: Uuid) -> None:
        topic = self._topic(topic_id)
        owned = self._to_change()
        with self._changing(topic.name):
            self._view = self._view.without_topic(topic)
            gone = owned.delete(topic)
            self._waiters.wake()
            await gone

    def _create_state_topic(self, resource: Resource) -> Topic:
        topic = self._new_state_topic(resource, self._owned.epoch)
        self._owned.add_state_topic(topic)
        self._show(self._view.with_topic(topic))
        return topic

    def _new_state_topic(self, resource: Resource, epoch: int) -> Topic:
        led = self._led(self._state_partitions[resource], epoch)
        config = TopicConfig.of({}, self._topic_defaults)
        return Topic(Uuid.random(), STATE_TOPICS[resource], led, config, internal=True)

    def _state_log(self, topic: Topic, index: int) -> StateLog:
        partition = self.partition(topic.id, index)
        assert isinstance(partition, ChainPartition)
        return self._owned.states.log(partition)

    def _shown(self, owned: Owned, stored: Stored) -> Topic:
        """
        A topic of the cluster as Kafka's clients see it.
        """
        led = self._led(stored.kept.partition_count, owned.epoch)
        return Topic(stored.kept.id, stored.name, led, owned.config(stored), stored.kept.internal)

    def _show_owned(self, owned: Owned, view: ClusterView) -> None:
        if self._held is owned:
            self._show(view)


async def _as_controller(change: Awaitable[T]) -> T:
    """
    The outcome of a change of the cluster; who does not own the topics is not its controller.
    """
    try:
        return await in_kafkas_words(change)
    except KafkaError as error:
        if error.code is ErrorCode.NOT_LEADER_OR_FOLLOWER:
            raise KafkaError(ErrorCode.NOT_CONTROLLER, error.message) from None
        raise
