"""
What a broker of one node is, wherever its records are: the topics that it shows, and the rules for changing them.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from twisted.internet.defer import Deferred, fail
from twisted.logger import Logger
from zope.interface import implementer

from kgateway.broker.in_order import InOrder
from kgateway.broker.state_log import StateLog
from kgateway.broker.topic_defaults import TopicDefaults
from kgateway.broker.waiters import Waiters
from kgateway.cluster.config import TopicConfig
from kgateway.cluster.config_resource import AllOverrides, Change, ConfigKind, ConfigResource
from kgateway.cluster.names import no_such_topic
from kgateway.cluster.view import Address, ClusterView, NewTopic, Node, PartitionState, Topic
from kgateway.coordinating.places import STATE_TOPICS, place_of
from kgateway.interfaces import Cancel, IPeers
from kgateway.security.permissions import Resource
from kgateway.wire.errors import ErrorCode, KafkaError
from kgateway.wire.schema import Message
from kgateway.wire.uuids import Uuid

STATE_PARTITIONS = 8  # of an internal topic that nobody has given another number


@implementer(IPeers)
class NoPeers:
    """
    The peers of a lone gateway.
    """

    def ask(self, node: Node, request: Message, version: int) -> Deferred[Message]:
        return fail(KafkaError(ErrorCode.BROKER_NOT_AVAILABLE, f"there is no node {node.id}: this gateway is alone"))


class LoneBroker:
    """
    Has each partition itself.
    """

    _log = Logger()

    def __init__(
        self,
        node_id: int,
        cluster_id: str,
        offsets_partitions: int = STATE_PARTITIONS,
        topic_defaults: Mapping[str, str] | None = None,
    ) -> None:
        self.node_id = node_id
        self.peers: IPeers = NoPeers()
        self._view = ClusterView(cluster_id=cluster_id, nodes=(Node(node_id),), controller_id=node_id)
        self._waiters = Waiters()
        self._topic_defaults = TopicDefaults(node_id, topic_defaults or {})
        self._topic_configs = InOrder()
        self._state_partitions = {Resource.GROUP: offsets_partitions, Resource.TRANSACTIONAL_ID: STATE_PARTITIONS}

    def leave(self) -> None:
        pass  # there are no others

    def announce(self, addresses: Mapping[str, Address]) -> None:
        pass  # nobody else is there to be told

    def view(self) -> ClusterView:
        return self._view

    def watch(self, listener: Callable[[], None]) -> Cancel:
        return self._waiters.add(listener)

    def coordinator(self, resource: Resource, key: str) -> StateLog:
        topic = self._view.topics.get(STATE_TOPICS[resource]) or self._create_state_topic(resource)
        return self._state_log(topic, place_of(key, len(topic.partitions)))

    def coordinators(self, resource: Resource) -> list[StateLog]:
        topic = self._view.topics.get(STATE_TOPICS[resource])
        return [self._state_log(topic, index) for index in range(len(topic.partitions))] if topic else []

    def check_topic(self, new: NewTopic) -> None:
        pass  # what is possible with Kafka is possible

    def change_config(self, resource: ConfigResource, change: Change) -> Deferred[None]:
        if resource.kind is ConfigKind.TOPIC:
            return self._topic_configs.do(resource.name, lambda: self._configure(resource.name, change))
        return self._change_overrides(resource, change)

    async def _configure(self, name: str, change: Change) -> None:
        """
        Change the config of a topic. The next change of it waits.
        """
        raise NotImplementedError

    def _change_overrides(self, resource: ConfigResource, change: Change) -> Deferred[None]:
        """
        Change what is set for what is no topic.
        """
        raise NotImplementedError

    def _tell(self, topic: Topic) -> None:
        """
        Let the partitions of a topic know that it has another config.
        """
        raise NotImplementedError

    def _create_state_topic(self, resource: Resource) -> Topic:
        """
        Make the internal topic for states of this kind, at once.
        """
        raise NotImplementedError

    def _state_log(self, topic: Topic, index: int) -> StateLog:
        """
        The state log in a partition of an internal topic.
        """
        raise NotImplementedError

    def _new_topic(self, new: NewTopic, leader_epoch: int) -> Topic:
        """
        The topic that it would be; a KafkaError where it cannot be.
        """
        if new.name in self._view.topics:
            raise taken(new.name)
        if new.partition_count < 1:
            reason = f"a topic has one partition at least, and {new.name} should get {new.partition_count}"
            raise KafkaError(ErrorCode.INVALID_PARTITIONS, reason)
        partitions = self._led(new.partition_count, leader_epoch)
        return Topic(Uuid.random(), new.name, partitions, new.config, new.internal)

    def _grown(self, topic_id: Uuid, partition_count: int) -> Topic:
        """
        The topic with more partitions.
        """
        topic = self._topic(topic_id)
        if partition_count <= len(topic.partitions):
            reason = f"topic {topic.name} has {len(topic.partitions)} partitions; {partition_count} are not more"
            raise KafkaError(ErrorCode.INVALID_PARTITIONS, reason)
        return replace(topic, partitions=self._led(partition_count, topic.partitions[0].leader_epoch))

    def _configured(self, name: str, change: Change) -> Topic:
        """
        The topic with the config that the change makes of its own; the very same where that is no other.
        """
        topic = self._view.topics.get(name)
        if topic is None:
            raise no_such_topic(name)
        config = topic.config.altered(change(topic.config.overrides), self._topic_defaults)
        return topic if config is topic.config else replace(topic, config=config)

    def _topic(self, topic_id: Uuid) -> Topic:
        topic = self._view.topics_by_id.get(topic_id)
        if topic is None:
            raise unknown(topic_id)
        return topic

    def _led(self, partition_count: int, leader_epoch: int) -> tuple[PartitionState, ...]:
        return (PartitionState(self.node_id, leader_epoch, (self.node_id,), (self.node_id,)),) * partition_count

    def _show_overrides(self, overrides: AllOverrides) -> None:
        """
        This is what is set from now on. Topics follow the defaults that are set for brokers.
        """
        if overrides is self._view.overrides:
            return
        view = self._view.with_overrides(overrides)
        if self._topic_defaults.follow(overrides):
            followed = self._all_following(view.topics.values())
            view = view.with_topics(followed)
            for topic in followed:
                self._tell(topic)
        self._show(view)

    def _all_following(self, topics: Iterable[Topic]) -> list[Topic]:
        """
        Those of the topics that are others by what holds now. Most have set the same, or nothing.
        """
        configs: dict[tuple[tuple[str, str], ...], TopicConfig] = {}
        changed = []
        for topic in topics:
            own = tuple(sorted(topic.config.overrides.items()))
            if own not in configs:
                configs[own] = self._following(topic).config
            if configs[own] != topic.config:
                changed.append(replace(topic, config=configs[own]))
        return changed

    def _following(self, topic: Topic) -> Topic:
        """
        The topic as it is by what holds now; the very same where it has followed already, or cannot follow.
        """
        try:
            config = topic.config.following(self._topic_defaults)
        except KafkaError as error:
            self._log.error("{topic} keeps its config: {why}", topic=topic.name, why=error.message)
            return topic
        return topic if config is topic.config else replace(topic, config=config)

    def _show_topic(self, topic: Topic) -> Topic:
        """
        The topic is now this one, be it new or changed; other defaults may hold than when that was begun.
        """
        followed = self._following(topic) if self._topic_defaults.have_moved else topic
        if followed is not topic:
            self._tell(followed)
        self._show(self._view.with_topic(followed))
        return followed

    def _show(self, view: ClusterView) -> None:
        """
        This is the cluster from now on.
        """
        self._view = view
        self._waiters.wake()


def taken(name: str) -> KafkaError:
    """
    What whoever comes second is told.
    """
    return KafkaError(ErrorCode.TOPIC_ALREADY_EXISTS, f"there is a topic {name} already")


def being_changed(name: str) -> KafkaError:
    """
    What whoever comes second is told where there can be a second time.
    """
    return KafkaError(ErrorCode.REQUEST_TIMED_OUT, f"topic {name} is being changed by another request; try again")


def unknown(topic_id: Uuid) -> KafkaError:
    """
    There is none with this id.
    """
    return KafkaError(ErrorCode.UNKNOWN_TOPIC_ID, f"there is no topic with the id {topic_id}")


def deleted(topic: Topic) -> KafkaError:
    """
    What those are told who still have one of its partitions.
    """
    return KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"topic {topic.name} was deleted")
