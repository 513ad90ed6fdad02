"""
A cluster at one moment, immutable, so that a view never changes under its holder. A change makes a new view that shares
what is the same.

Objects are keyed by topic id; a name is only how clients find one.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Self

from kgateway.cluster.config import TopicConfig
from kgateway.cluster.config_resource import NO_OVERRIDES, AllOverrides, ConfigResource, Overrides, ResourceType
from kgateway.cluster.names import blurred
from kgateway.wire.errors import ErrorCode, KafkaError
from kgateway.wire.uuids import Uuid

NO_NODE = -1


@dataclass(frozen=True, slots=True)
class Address:
    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Node:
    """
    One gateway. `addresses` is by listener. The gateway that answers may know its own addresses better.
    """

    id: int
    rack: str | None = None
    addresses: Mapping[str, Address] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PartitionState:
    leader_id: int
    leader_epoch: int
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Topic:
    id: Uuid
    name: str
    partitions: tuple[PartitionState, ...]
    config: TopicConfig = field(default_factory=TopicConfig)
    internal: bool = False
    born: int = 0  # the start of the node that created it, if leader epochs count from there

    def no_partition(self, index: int) -> KafkaError:
        reason = f"topic {self.name} has no partition {index}: it has {len(self.partitions)}, counted from 0"
        return KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, reason)


@dataclass(frozen=True, slots=True)
class NewTopic:
    name: str
    partition_count: int
    config: TopicConfig = field(default_factory=TopicConfig)
    internal: bool = False


@dataclass(frozen=True, slots=True)
class ClusterView:
    cluster_id: str
    nodes: tuple[Node, ...]
    controller_id: int
    topics: Mapping[str, Topic] = field(default_factory=dict)
    topics_by_id: Mapping[Uuid, Topic] = field(default_factory=dict)
    blurred_names: Mapping[str, str] = field(default_factory=dict)  # the forms that collide, see names.py
    overrides: AllOverrides = field(default_factory=dict)  # of all resources but topics, which have their own
    features: Mapping[str, int] = field(default_factory=dict)  # the finalized levels
    epoch: int = 0  # of the metadata; grows with each change

    def node(self, node_id: int) -> Node | None:
        return next((node for node in self.nodes if node.id == node_id), None)

    def with_cluster(self, cluster_id: str, topics: Collection[Topic]) -> "ClusterView":
        """
        The view of this cluster, with these topics and no others.
        """
        return replace(
            self,
            cluster_id=cluster_id,
            topics={topic.name: topic for topic in topics},
            topics_by_id={topic.id: topic for topic in topics},
            blurred_names={blurred(topic.name): topic.name for topic in topics},
        )

    def with_topic(self, topic: Topic) -> "ClusterView":
        """
        The view with this topic, in place of the one with its id.
        """
        return replace(
            self,
            topics={**self.topics, topic.name: topic},
            topics_by_id={**self.topics_by_id, topic.id: topic},
            blurred_names={**self.blurred_names, blurred(topic.name): topic.name},
            epoch=self.epoch + 1,
        )

    def with_only(self, topics: Iterable[Topic]) -> "ClusterView":
        """
        The view with these topics and no others.
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
        The view with other versions of these topics, all of which it has.
        """
        named = {topic.name: topic for topic in topics}
        return replace(
            self,
            topics={**self.topics, **named},
            topics_by_id={**self.topics_by_id, **{topic.id: topic for topic in named.values()}},
            epoch=self.epoch + 1,
        )

    def without_topic(self, topic: Topic) -> "ClusterView":
        return replace(
            self,
            topics={name: other for name, other in self.topics.items() if other.id != topic.id},
            topics_by_id={key: other for key, other in self.topics_by_id.items() if key != topic.id},
            blurred_names={key: name for key, name in self.blurred_names.items() if name != topic.name},
            epoch=self.epoch + 1,
        )

    def without_leaders(self) -> "ClusterView":
        """
        The view in which no partition has a known leader, nor the cluster a controller.
        """
        topics = [
            replace(topic, partitions=tuple(replace(partition, leader_id=NO_NODE) for partition in topic.partitions))
            for topic in self.topics.values()
        ]
        return replace(self.with_topics(topics), controller_id=NO_NODE, epoch=self.epoch)

    def overrides_of(self, resource: ConfigResource) -> Overrides:
        if resource.kind is ResourceType.TOPIC:
            topic = self.topics.get(resource.name)
            return topic.config.overrides if topic else NO_OVERRIDES
        return self.overrides.get(resource, NO_OVERRIDES)

    def with_overrides(self, overrides: AllOverrides) -> "ClusterView":
        return replace(self, overrides=overrides, epoch=self.epoch + 1)


@dataclass(frozen=True, slots=True)
class ListenerView:
    """
    The cluster as the clients of one listener see it: they cannot use a node without an address there.
    """

    view: ClusterView
    nodes: Mapping[int, Node]

    @classmethod
    def of(cls, view: ClusterView, own_id: int, listener: str) -> Self:
        """
        The view of a listener. It includes this gateway, to which the client is connected.
        """
        reachable = {node.id: node for node in view.nodes if node.id == own_id or listener in node.addresses}
        return cls(view, reachable)

    @property
    def controller_id(self) -> int:
        return self.view.controller_id if self.view.controller_id in self.nodes else NO_NODE

    def leader(self, partition: PartitionState) -> int:
        return partition.leader_id if partition.leader_id in self.nodes else NO_NODE

    def offline(self, partition: PartitionState) -> list[int]:
        """
        The replicas of a partition that clients do not reach.
        """
        return [node for node in partition.replicas if node not in self.nodes]
