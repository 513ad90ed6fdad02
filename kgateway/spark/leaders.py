"""
Who leads which partition, and of which topic: one that is deleted and made anew under its old name is another one.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from kgateway.client.address import Address
from kgateway.client.cluster import Cluster, Node, refuse
from kgateway.client.offsets import Partition
from kgateway.messages.metadata import MetadataResponse
from kgateway.spark.failures import TopicGone
from kgateway.spark.patience import NO_TOPIC
from kgateway.wire.errors import ErrorCode, KafkaError
from kgateway.wire.uuids import Uuid


@dataclass(frozen=True, slots=True)
class Led:
    """
    Who leads a partition, of which topic.
    """

    node: Node
    epoch: int
    topic_id: Uuid


class Leaders:
    """
    Those of a cluster. They are asked for each time; what stays is which topics were seen.
    """

    def __init__(self) -> None:
        self.cluster_id: str | None = None  # once something was asked
        self.topic_ids: dict[str, Uuid] = {}

    def told(self, cluster: Cluster, topics: Iterable[str] | None) -> MetadataResponse:
        """
        What the cluster says of these topics, or of all.
        """
        told = cluster.metadata(topics)
        self.cluster_id = told.cluster_id
        for topic in told.topics:
            if topic.error_code in NO_TOPIC:
                continue
            refuse(topic.error_code)
            known = self.topic_ids.setdefault(topic.name or "", topic.topic_id)
            if known != topic.topic_id:
                raise TopicGone(f"topic {topic.name} was deleted and made anew while it was read")
        return told

    def of(self, cluster: Cluster, wanted: Collection[Partition]) -> dict[Partition, Led]:
        """
        Who leads these; KafkaError where nobody does at the moment, or one is not there.
        """
        told = self.told(cluster, sorted({one.topic for one in wanted}))
        nodes = {one.node_id: Node(one.node_id, Address(one.host, one.port)) for one in told.brokers}
        led: dict[Partition, Led | None] = {
            Partition(topic.name or "", one.partition_index): (
                Led(nodes[one.leader_id], one.leader_epoch, topic.topic_id) if one.leader_id in nodes else None
            )
            for topic in told.topics
            for one in topic.partitions
        }
        return {one: _leader(one, led) for one in wanted}


def _leader(partition: Partition, led: dict[Partition, Led | None]) -> Led:
    if partition not in led:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no {partition}")
    leader = led[partition]
    if leader is None:
        raise KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, f"{partition} has no leader at the moment")
    return leader
