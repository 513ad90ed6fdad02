"""
Lists, creates, changes and deletes topics, and deletes records.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from kgateway.client.cluster import Cluster, Node, by_node, by_topic, leaders_of, nodes_in, refuse
from kgateway.client.connection import Unanswered
from kgateway.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsResponse
from kgateway.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from kgateway.messages.delete_records import DeleteRecordsRequest, DeleteRecordsResponse
from kgateway.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from kgateway.messages.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse
from kgateway.messages.metadata import MetadataResponse
from kgateway.topic_partition import TopicPartition
from kgateway.wire.errors import ErrorCode

SERVERS_CHOICE = -1  # a number of partitions or replicas
_UNKNOWN = -1
_WORK_MS = 30_000
_BY_NAME = 5  # the last version of DeleteTopics that has no ids
_GONE = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
_NO_LEADER = ErrorCode.LEADER_NOT_AVAILABLE


@dataclass(frozen=True, slots=True)
class PartitionDescription:
    """
    A partition and its replicas; there may be no leader at the moment.
    """

    partition: TopicPartition
    leader: Node | None
    epoch: int
    replicas: list[int]
    in_sync: list[int]


@dataclass(frozen=True, slots=True)
class TopicDescription:
    name: str
    id: str
    is_internal: bool
    parts: list[PartitionDescription]

    @property
    def replicas(self) -> int:
        return max((len(part.replicas) for part in self.parts), default=0)


class CreatedTopic(NamedTuple):
    """
    What was made; None for what an old server does not say.
    """

    partitions: int | None
    replicas: int | None


def list_topics(cluster: Cluster) -> dict[str, TopicDescription]:
    answer = cluster.metadata(None)
    nodes = nodes_in(answer)
    found = [_topic(result, nodes) for result in answer.topics if result.error_code in {ErrorCode.NONE, _NO_LEADER}]
    return {topic.name: topic for topic in sorted(found, key=lambda topic: topic.name)}


def _topic(result: MetadataResponse.Topic, nodes: Mapping[int, Node]) -> TopicDescription:
    name = result.name or ""
    parts = [
        PartitionDescription(
            TopicPartition(name, part.partition_index),
            nodes.get(part.leader_id),
            part.leader_epoch,
            part.replica_nodes,
            part.isr_nodes,
        )
        for part in sorted(result.partitions, key=lambda part: part.partition_index)
    ]
    return TopicDescription(name, str(result.topic_id), result.is_internal, parts)


def create_topic(
    cluster: Cluster, name: str, partitions: int, replicas: int, configs: Mapping[str, str]
) -> CreatedTopic:
    topic = CreateTopicsRequest.Topic(
        name=name,
        num_partitions=partitions,
        replication_factor=replicas,
        assignments=[],
        configs=[CreateTopicsRequest.Topic.Config(name=key, value=value) for key, value in configs.items()],
    )
    request = CreateTopicsRequest(topics=[topic], timeout_ms=_WORK_MS)
    [result] = cluster.controller().ask(request, CreateTopicsResponse).topics
    refuse(result.error_code, result.error_message)
    made = result.num_partitions, result.replication_factor
    return CreatedTopic(*(None if number == _UNKNOWN else number for number in made))


def create_partitions(cluster: Cluster, name: str, partitions: int) -> None:
    topic = CreatePartitionsRequest.Topic(name=name, count=partitions, assignments=None)
    request = CreatePartitionsRequest(topics=[topic], timeout_ms=_WORK_MS, validate_only=False)
    [result] = cluster.controller().ask(request, CreatePartitionsResponse).results
    refuse(result.error_code, result.error_message)


def delete_topic(cluster: Cluster, name: str) -> None:
    request = DeleteTopicsRequest(topic_names=[name], topics=[], timeout_ms=_WORK_MS)
    [result] = cluster.controller().ask(request, DeleteTopicsResponse, newest=_BY_NAME).responses
    refuse(result.error_code, result.error_message)


def delete_records(cluster: Cluster, before: Mapping[TopicPartition, int]) -> dict[TopicPartition, tuple[int, int]]:
    """
    Delete the records with lower offsets than these. Returns an error code and the new start of each log.
    """
    leaders = leaders_of(cluster, {one.topic for one in before})
    result = {one: (int(_GONE), -1) for one in before}
    for node, own in by_node({one: leaders[one].node for one in before if one in leaders}).items():
        request = DeleteRecordsRequest(topics=_to_delete(own, before), timeout_ms=_WORK_MS)
        for topic in cluster.connection(node).ask(request, DeleteRecordsResponse).topics:
            for part in topic.partitions:
                result[TopicPartition(topic.name, part.partition_index)] = part.error_code, part.low_watermark
    return result


def _to_delete(own: Iterable[TopicPartition], before: Mapping[TopicPartition, int]) -> list[DeleteRecordsRequest.Topic]:
    kind = DeleteRecordsRequest.Topic
    return [
        kind(name=name, partitions=[kind.Partition(partition_index=one.index, offset=before[one]) for one in group])
        for name, group in by_topic(own).items()
    ]


def sizes(cluster: Cluster, wanted: Iterable[TopicDescription]) -> dict[TopicPartition, int]:
    """
    The sizes of partitions on the disks of their leaders, if the leaders report them.
    """
    led = {part.partition: part.leader for topic in wanted for part in topic.parts if part.leader}
    result: dict[TopicPartition, int] = {}
    for node in {*led.values()}:
        try:
            connection = cluster.connection(node)
            if connection.serves(DescribeLogDirsRequest):
                own = [partition for partition, leader in led.items() if leader == node]
                result |= _sizes_at(connection.ask(_of_disks(own), DescribeLogDirsResponse))
        except Unanswered:
            continue
    return result


def _of_disks(own: Iterable[TopicPartition]) -> DescribeLogDirsRequest:
    kind = DescribeLogDirsRequest.Topic
    asked = [kind(topic=name, partitions=[one.index for one in group]) for name, group in by_topic(own).items()]
    return DescribeLogDirsRequest(topics=asked)


def _sizes_at(answer: DescribeLogDirsResponse) -> dict[TopicPartition, int]:
    return {
        TopicPartition(topic.name, part.partition_index): part.partition_size
        for folder in answer.results
        for topic in folder.topics
        for part in topic.partitions
        if not part.is_future_key
    }
