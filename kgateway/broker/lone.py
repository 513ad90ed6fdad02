"""
What a broker of one node is, wherever its records are: the topics that it shows, and the rules for changing them.
"""

from collections.abc import Callable
from dataclasses import replace

from twisted.internet.defer import Deferred, fail
from zope.interface import implementer

from kgateway.broker.state_log import STATE_TOPICS, StateLog, place_of
from kgateway.broker.waiters import Waiters
from kgateway.cluster.config_resource import AllOverrides
from kgateway.cluster.view import ClusterView, NewTopic, Node, PartitionState, Topic
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

    def __init__(self, node_id: int, cluster_id: str, offsets_partitions: int = STATE_PARTITIONS) -> None:
        self.node_id = node_id
        self.peers = NoPeers()
        self._view = ClusterView(cluster_id=cluster_id, nodes=(Node(node_id),), controller_id=node_id)
        self._waiters = Waiters()
        self._state_partitions = {Resource.GROUP: offsets_partitions, Resource.TRANSACTIONAL_ID: STATE_PARTITIONS}

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

    def _topic(self, topic_id: Uuid) -> Topic:
        topic = self._view.topics_by_id.get(topic_id)
        if topic is None:
            raise unknown(topic_id)
        return topic

    def _led(self, partition_count: int, leader_epoch: int) -> tuple[PartitionState, ...]:
        return (PartitionState(self.node_id, leader_epoch, (self.node_id,), (self.node_id,)),) * partition_count

    def _show_overrides(self, overrides: AllOverrides) -> None:
        """
        This is what is set from now on.
        """
        if overrides is not self._view.overrides:
            self._show(self._view.with_overrides(overrides))

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


def unknown(topic_id: Uuid) -> KafkaError:
    """
    There is none with this id.
    """
    return KafkaError(ErrorCode.UNKNOWN_TOPIC_ID, f"there is no topic with the id {topic_id}")


def no_partition(topic: Topic, index: int) -> KafkaError:
    """
    The topic does not have so many.
    """
    reason = f"topic {topic.name} has no partition {index}, but {len(topic.partitions)} from 0 on"
    return KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, reason)


def deleted(topic: Topic) -> KafkaError:
    """
    What those are told who still have one of its partitions.
    """
    return KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"topic {topic.name} was deleted")
