"""
Topics, as the servers of a cluster tell of them and make them.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kgateway.client.address import Address
from kgateway.client.cluster import Cluster, Node, refuse
from kgateway.client.connection import Unanswered
from kgateway.client.offsets import Partition, by_topic, leaders_of
from kgateway.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsResponse
from kgateway.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from kgateway.messages.delete_records import DeleteRecordsRequest, DeleteRecordsResponse
from kgateway.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from kgateway.messages.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse
from kgateway.messages.metadata import MetadataResponse
from kgateway.wire.errors import ErrorCode

SERVERS_CHOICE = -1  # of partitions or replicas
_WORK_MS = 30_000
_BY_NAME = 5  # the last version of DeleteTopics that has no ids
_GONE = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@dataclass(frozen=True, slots=True)
class Part:
    """
    A partition and who has it; there may be no leader at the moment.
    """

    partition: Partition
    leader: Node | None
    epoch: int
    replicas: list[int]
    in_sync: list[int]


@dataclass(frozen=True, slots=True)
class Topic:
    """
    A topic and its partitions.
    """

    name: str
    id: str
    is_internal: bool
    parts: list[Part]

    @property
    def replicas(self) -> int:
        """
        How many copies there are of a partition.
        """
        return max((len(part.replicas) for part in self.parts), default=0)


def topics(cluster: Cluster) -> dict[str, Topic]:
    """
    All topics, by name.
    """
    answer = cluster.metadata(None)
    nodes = {one.node_id: Node(one.node_id, Address(one.host, one.port)) for one in answer.brokers}
    found = [_topic(told, nodes) for told in answer.topics if told.error_code in {ErrorCode.NONE, _NO_LEADER}]
    return {topic.name: topic for topic in sorted(found, key=lambda topic: topic.name)}


_NO_LEADER = ErrorCode.LEADER_NOT_AVAILABLE


def _topic(told: MetadataResponse.Topic, nodes: Mapping[int, Node]) -> Topic:
    name = told.name or ""
    parts = [
        Part(
            Partition(name, part.partition_index),
            nodes.get(part.leader_id),
            part.leader_epoch,
            part.replica_nodes,
            part.isr_nodes,
        )
        for part in sorted(told.partitions, key=lambda part: part.partition_index)
    ]
    return Topic(name, str(told.topic_id), told.is_internal, parts)


def create(cluster: Cluster, name: str, partitions: int, replicas: int, configs: Mapping[str, str]) -> None:
    """
    Make a topic.
    """
    topic = CreateTopicsRequest.Topic(
        name=name,
        num_partitions=partitions,
        replication_factor=replicas,
        assignments=[],
        configs=[CreateTopicsRequest.Topic.Config(name=key, value=value) for key, value in configs.items()],
    )
    request = CreateTopicsRequest(topics=[topic], timeout_ms=_WORK_MS)
    [told] = cluster.controller().ask(request, CreateTopicsResponse).topics
    refuse(told.error_code, told.error_message)


def widen(cluster: Cluster, name: str, partitions: int) -> None:
    """
    Have it so many partitions.
    """
    topic = CreatePartitionsRequest.Topic(name=name, count=partitions, assignments=None)
    request = CreatePartitionsRequest(topics=[topic], timeout_ms=_WORK_MS, validate_only=False)
    [told] = cluster.controller().ask(request, CreatePartitionsResponse).results
    refuse(told.error_code, told.error_message)


def delete(cluster: Cluster, name: str) -> None:
    """
    Have it gone with all it holds.
    """
    request = DeleteTopicsRequest(topic_names=[name], topics=[], timeout_ms=_WORK_MS)
    [told] = cluster.controller().ask(request, DeleteTopicsResponse, newest=_BY_NAME).responses
    refuse(told.error_code, told.error_message)


def delete_records(cluster: Cluster, before: Mapping[Partition, int]) -> dict[Partition, tuple[int, int]]:
    """
    Have the records go that stand before these offsets. Of each partition the error code, and where it begins now.
    """
    leaders = leaders_of(cluster, {one.topic for one in before})
    told = {one: (int(_GONE), -1) for one in before}
    for leader in {leaders[one] for one in before if one in leaders}:
        own = [one for one in before if leaders.get(one) == leader]
        request = DeleteRecordsRequest(topics=_to_delete(own, before), timeout_ms=_WORK_MS)
        for topic in cluster.connection(leader).ask(request, DeleteRecordsResponse).topics:
            for part in topic.partitions:
                told[Partition(topic.name, part.partition_index)] = part.error_code, part.low_watermark
    return told


def _to_delete(own: Iterable[Partition], before: Mapping[Partition, int]) -> list[DeleteRecordsRequest.Topic]:
    kind = DeleteRecordsRequest.Topic
    return [
        kind(name=name, partitions=[kind.Partition(partition_index=one.index, offset=before[one]) for one in group])
        for name, group in by_topic(own).items()
    ]


def sizes(cluster: Cluster, wanted: Iterable[Topic]) -> dict[Partition, int]:
    """
    The bytes on the disks of the leaders, of those that tell.
    """
    led = {part.partition: part.leader for topic in wanted for part in topic.parts if part.leader}
    told: dict[Partition, int] = {}
    for node in {*led.values()}:
        try:
            connection = cluster.connection(node)
            if connection.serves(DescribeLogDirsRequest):
                own = [partition for partition, leader in led.items() if leader == node]
                told |= _sizes_at(connection.ask(_of_disks(own), DescribeLogDirsResponse))
        except Unanswered:
            continue
    return told


def _of_disks(own: Iterable[Partition]) -> DescribeLogDirsRequest:
    kind = DescribeLogDirsRequest.Topic
    asked = [kind(topic=name, partitions=[one.index for one in group]) for name, group in by_topic(own).items()]
    return DescribeLogDirsRequest(topics=asked)


def _sizes_at(answer: DescribeLogDirsResponse) -> dict[Partition, int]:
    return {
        Partition(topic.name, part.partition_index): part.partition_size
        for folder in answer.results
        for topic in folder.topics
        for part in topic.partitions
        if not part.is_future_key
    }
