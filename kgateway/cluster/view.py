"""
A cluster as it is at one moment: immutable, so that whoever holds a view is never surprised.

Things are keyed by topic id; a name is only how clients find one. A change makes a new view that shares what is the
same.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from kgateway.cluster.config import TopicConfig
from kgateway.cluster.config_resource import NO_OVERRIDES, AllOverrides, ConfigKind, ConfigResource, Overrides
from kgateway.cluster.names import blurred
from kgateway.wire.errors import ErrorCode, KafkaError
from kgateway.wire.uuids import Uuid

NO_NODE = -1


@dataclass(frozen=True, slots=True)
class Address:
    """
    Where clients reach a node.
    """

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Node:
    """
    One gateway. `addresses` is by listener; the gateway that answers may know its own better.
    """

    id: int
    rack: str | None = None
    addresses: Mapping[str, Address] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PartitionState:
    """
    Who leads a partition, and since when.
    """

    leader_id: int
    leader_epoch: int
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Topic:
    """
    A topic and its partitions, by index.
    """

    id: Uuid
    name: str
    partitions: tuple[PartitionState, ...]
    config: TopicConfig = field(default_factory=TopicConfig)
    internal: bool = False

    def no_partition(self, index: int) -> KafkaError:
        """
        What those are told who ask for one that it does not have.
        """
        reason = f"topic {self.name} has no partition {index}, but {len(self.partitions)} from 0 on"
        return KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, reason)


@dataclass(frozen=True, slots=True)
class NewTopic:
    """
    What a topic is to be.
    """

    name: str
    partition_count: int
    config: TopicConfig = field(default_factory=TopicConfig)
    internal: bool = False


@dataclass(frozen=True, slots=True)
class ClusterView:
    """
    Nodes, topics and features.
    """

    cluster_id: str
    nodes: tuple[Node, ...]
    controller_id: int
    topics: Mapping[str, Topic] = field(default_factory=dict)
    topics_by_id: Mapping[Uuid, Topic] = field(default_factory=dict)
    blurred_names: Mapping[str, str] = field(default_factory=dict)  # which two topics may not share
    overrides: AllOverrides = field(default_factory=dict)  # of what is not a topic, which has its own
    features: Mapping[str, int] = field(default_factory=dict)  # finalized, and their levels
    epoch: int = 0  # of the metadata; grows with each change

    def node(self, node_id: int) -> Node | None:
        """
        The node of this id, if it is in the cluster.
        """
        return next((node for node in self.nodes if node.id == node_id), None)

    def with_topic(self, topic: Topic) -> "ClusterView":
        """
        The view in which this topic is there, in place of the one with its id.
        """
        return replace(
            self,
            topics={**self.topics, topic.name: topic},
            topics_by_id={**self.topics_by_id, topic.id: topic},
            blurred_names={**self.blurred_names, blurred(topic.name): topic.name},
            epoch=self.epoch + 1,
        )

    def having(self, topics: Iterable[Topic]) -> "ClusterView":
        """
        The view in which these topics are there, and no others.
        """
        named = {topic.name: topic for topic in topics}
        return replace(
            self,
            topics=named,
            topics_by_id={topic.id: topic for topic in named.values()},
            blurred_names={blurred(name): name for name in named},
            epoch=self.epoch + 1,
        )

    def with_topics(self, topics: Iterable[Topic]) -> "ClusterView":
        """
        The view in which these topics are as they are here; it has all of them already.
        """
        named = {topic.name: topic for topic in topics}
        return replace(
            self,
            topics={**self.topics, **named},
            topics_by_id={**self.topics_by_id, **{topic.id: topic for topic in named.values()}},
            epoch=self.epoch + 1,
        )

    def without_topic(self, topic: Topic) -> "ClusterView":
        """
        The view in which this topic is gone.
        """
        return replace(
            self,
            topics={name: other for name, other in self.topics.items() if other.id != topic.id},
            topics_by_id={key: other for key, other in self.topics_by_id.items() if key != topic.id},
            blurred_names={key: name for key, name in self.blurred_names.items() if name != topic.name},
            epoch=self.epoch + 1,
        )

    def without_leaders(self) -> "ClusterView":
        """
        The view in which it is not known who leads, be it a partition or the cluster.
        """
        topics = [
            replace(topic, partitions=tuple(replace(partition, leader_id=NO_NODE) for partition in topic.partitions))
            for topic in self.topics.values()
        ]
        return replace(self.with_topics(topics), controller_id=NO_NODE, epoch=self.epoch)

    def overrides_of(self, resource: ConfigResource) -> Overrides:
        """
        What is set for a resource.
        """
        if resource.kind is ConfigKind.TOPIC:
            topic = self.topics.get(resource.name)
            return topic.config.overrides if topic else NO_OVERRIDES
        return self.overrides.get(resource, NO_OVERRIDES)

    def with_overrides(self, overrides: AllOverrides) -> "ClusterView":
        """
        The view in which this is set for its resources.
        """
        return replace(self, overrides=overrides, epoch=self.epoch + 1)
