"""
What the brokers share: the topics that a broker shows, their default configs, and the rules for changing them.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

from twisted.internet.defer import Deferred, fail
from twisted.logger import Logger
from zope.interface import implementer

from kgateway.broker.partition.listeners import Listeners
from kgateway.broker.state_log import StateLog
from kgateway.broker.topic_changes import ChangeQueue
from kgateway.cluster.broker_config import defaults_at_run_time
from kgateway.cluster.config import TopicConfig
from kgateway.cluster.config_resource import AllOverrides, Change, ConfigResource, ResourceType
from kgateway.cluster.names import no_such_topic
from kgateway.cluster.view import Address, ClusterView, NewTopic, Node, PartitionState, Topic
from kgateway.coordination.placement import STATE_TOPICS, partition_for
from kgateway.interfaces import Cancel, IPeers
from kgateway.log_messages import KEEPS_CONFIG
from kgateway.plurals import counted
from kgateway.security.permissions import Resource
from kgateway.wire.errors import ErrorCode, KafkaError
from kgateway.wire.schema import Message
from kgateway.wire.uuids import Uuid


class TopicDefaults(Mapping[str, str]):
    """
    The topic configs that hold if a topic sets nothing, by name. They follow what is set for brokers.
    """

    def __init__(self, node_id: int, started: Mapping[str, str]) -> None:
        self._node_id = node_id
        self._started = self._now = started
        self.have_moved = False  # whether any default has changed since the start

    def follow(self, everything: AllOverrides) -> bool:
        """
        Follow these overrides. Returns whether a default has changed.
        """
        before, self._now = self._now, {**self._started, **defaults_at_run_time(self._node_id, everything)}
        moved = before != self._now
        self.have_moved |= moved
        return moved

    def __getitem__(self, name: str) -> str:
        return self._now[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._now)

    def __len__(self) -> int:
        return len(self._now)


STATE_PARTITIONS = 8  # of an internal topic, unless set


@implementer(IPeers)
class NoPeers:
    def ask(self, node: Node, request: Message, version: int) -> Deferred[Message]:
        return fail(
            KafkaError(ErrorCode.BROKER_NOT_AVAILABLE, f"there is no node {node.id}: this gateway is the only one")
        )


class BrokerBase:
    _log = Logger()

    def __init__(self, node_id: int, cluster_id: str, topic_defaults: Mapping[str, str] | None = None) -> None:
        self.node_id = node_id
        self._view = ClusterView(cluster_id=cluster_id, nodes=(Node(node_id),), controller_id=node_id)
        self._view_listeners = Listeners()
        self._topic_defaults = TopicDefaults(node_id, topic_defaults or {})
        self._topic_configs = ChangeQueue()

    def stop(self) -> Deferred[None]:
        raise NotImplementedError

    def undo_start(self) -> Deferred[None]:
        return self.stop()

    def watch(self, listener: Callable[[], None]) -> Cancel:
        return self._view_listeners.add(listener)

    def change_config(self, resource: ConfigResource, change: Change) -> Deferred[None]:
        if resource.kind is ResourceType.TOPIC:
            return self._topic_configs.do(resource.name, lambda: self._configure(resource.name, change))
        return self._change_overrides(resource, change)

    async def _configure(self, name: str, change: Change) -> None:
        raise NotImplementedError

    def _change_overrides(self, resource: ConfigResource, change: Change) -> Deferred[None]:
        raise NotImplementedError

    def _apply_config(self, topic: Topic) -> None:
        """
        Apply the config of a topic to its open partitions.
        """
        raise NotImplementedError

    def _new_topic(self, new: NewTopic, leader_epoch: int, born: int = 0) -> Topic:
        if new.name in self._view.topics:
            raise topic_exists(new.name)
        if new.partition_count < 1:
            reason = f"a topic has at least one partition, and {new.partition_count} were requested for {new.name}"
            raise KafkaError(ErrorCode.INVALID_PARTITIONS, reason)
        partitions = self._led(new.partition_count, leader_epoch)
        return Topic(Uuid.random(), new.name, partitions, new.config, new.internal, born)

    def _grown(self, topic: Topic, partition_count: int, leader_epoch: int) -> Topic:
        if partition_count <= len(topic.partitions):
            now = counted(len(topic.partitions), "partition")
            reason = f"topic {topic.name} has {now} already; {partition_count} would not be an increase"
            raise KafkaError(ErrorCode.INVALID_PARTITIONS, reason)
        added = self._led(partition_count - len(topic.partitions), leader_epoch)
        return replace(topic, partitions=topic.partitions + added)

    def _configured(self, name: str, change: Change) -> Topic:
        """
        The topic with the changed config, or the very same one if nothing changes.
        """
        topic = self._view.topics.get(name)
        if topic is None:
            raise no_such_topic(name)
        config = topic.config.altered(change(topic.config.overrides), self._topic_defaults)
        return topic if config is topic.config else replace(topic, config=config)

    def _topic(self, topic_id: Uuid) -> Topic:
        topic = self._view.topics_by_id.get(topic_id)
        if topic is None:
            raise no_topic_with_id(topic_id)
        return topic

    def _led(self, partition_count: int, leader_epoch: int) -> tuple[PartitionState, ...]:
        return (PartitionState(self.node_id, leader_epoch, (self.node_id,), (self.node_id,)),) * partition_count

    def _show_overrides(self, overrides: AllOverrides) -> None:
        """
        Show these overrides from now on. Topics follow the defaults that are set for brokers.
        """
        if overrides is self._view.overrides:
            return
        view = self._view.with_overrides(overrides)
        if self._topic_defaults.follow(overrides):
            changed = self._changed_by_defaults(view.topics.values())
            view = view.with_topics(changed)
            for topic in changed:
                self._apply_config(topic)
        self._show(view)

    def _changed_by_defaults(self, topics: Iterable[Topic]) -> list[Topic]:
        """
        The topics whose config changes with the defaults. Most topics set the same, or nothing, so configs are shared.
        """
        configs: dict[tuple[tuple[str, str], ...], TopicConfig] = {}
        changed = []
        for topic in topics:
            own = tuple(sorted(topic.config.overrides.items()))
            if own not in configs:
                configs[own] = self._with_present_defaults(topic).config
            if configs[own] != topic.config:
                changed.append(replace(topic, config=configs[own]))
        return changed

    def _with_present_defaults(self, topic: Topic) -> Topic:
        """
        The topic with the defaults as they are now, or the very same one if nothing changes, or if it cannot follow.
        """
        try:
            config = topic.config.following(self._topic_defaults)
        except KafkaError as error:
            self._log.error(KEEPS_CONFIG, topic=topic.name, why=error.message)
            return topic
        return topic if config is topic.config else replace(topic, config=config)

    def _show_topic(self, topic: Topic) -> Topic:
        """
        Show a new or changed topic. The defaults may have changed since its creation or change was begun.
        """
        shown = self._with_present_defaults(topic) if self._topic_defaults.have_moved else topic
        if shown is not topic:
            self._apply_config(shown)
        self._show(self._view.with_topic(shown))
        return shown

    def _show(self, view: ClusterView) -> None:
        self._view = view
        self._view_listeners.wake()


class SingleNodeBroker(BrokerBase):
    """
    A broker that leads each partition itself.
    """

    def __init__(
        self,
        node_id: int,
        cluster_id: str,
        offsets_partitions: int = STATE_PARTITIONS,
        topic_defaults: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(node_id, cluster_id, topic_defaults)
        self.peers: IPeers = NoPeers()
        self._state_partitions = {Resource.GROUP: offsets_partitions, Resource.TRANSACTIONAL_ID: STATE_PARTITIONS}

    def leave(self) -> None:
        pass  # there are no other nodes

    def announce(self, addresses: Mapping[str, Address]) -> None:
        pass  # there are no other nodes

    def view(self) -> ClusterView:
        return self._view

    def coordinator(self, resource: Resource, key: str) -> StateLog:
        topic = self._view.topics.get(STATE_TOPICS[resource]) or self._create_state_topic(resource)
        return self._state_log(topic, partition_for(key, len(topic.partitions)))

    def coordinators(self, resource: Resource) -> list[StateLog]:
        topic = self._view.topics.get(STATE_TOPICS[resource])
        return [self._state_log(topic, index) for index in range(len(topic.partitions))] if topic else []

    def check_topic(self, new: NewTopic) -> None:
        pass  # everything possible with Kafka is

    def _create_state_topic(self, resource: Resource) -> Topic:
        raise NotImplementedError

    def _state_log(self, topic: Topic, index: int) -> StateLog:
        raise NotImplementedError


def topic_exists(name: str) -> KafkaError:
    return KafkaError(ErrorCode.TOPIC_ALREADY_EXISTS, f"topic {name} already exists")


def no_topic_with_id(topic_id: Uuid) -> KafkaError:
    return KafkaError(ErrorCode.UNKNOWN_TOPIC_ID, f"there is no topic with the id {topic_id}")


def topic_deleted(topic: Topic) -> KafkaError:
    return KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"topic {topic.name} was deleted")


class BrokerUnusable(Exception):
    """
    A broker cannot be started. The message says what is wrong, where, and what to do.
    """


class BrokerMisplaced(BrokerUnusable):
    """
    No broker can ever be at the place that is named, for example because a file is there.
    """
