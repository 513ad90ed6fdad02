"""
What groups have committed, and where in the logs of partitions something is.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from kgateway.client.address import Address
from kgateway.client.cluster import Cluster, Node, refuse
from kgateway.client.connection import Unanswered
from kgateway.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from kgateway.messages.metadata import MetadataResponse
from kgateway.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from kgateway.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from kgateway.wire.errors import ErrorCode, KafkaError

LATEST, EARLIEST = -1, -2  # in place of a timestamp
_NONE = -1
_CONSUMER = -1  # in place of a replica's id
_BY_NAME = 9  # the last version of OffsetFetch and OffsetCommit that names topics
_PATIENCE_MS = 30_000
_GONE = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.INVALID_TOPIC_EXCEPTION)


@dataclass(frozen=True, slots=True, order=True)
class Partition:
    """
    A partition of a topic.
    """

    topic: str
    index: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.index}"


class Committed(NamedTuple):
    """
    What a group has committed for a partition: what it reads next, and the client's own note.
    """

    offset: int
    metadata: str


class Found(NamedTuple):
    """
    A place in a log. There is no timestamp where the place is an end of it, and no offset where no record is so late.
    """

    offset: int | None
    timestamp_ms: int | None


class Extent(NamedTuple):
    """
    The first offset that a log has, and the one behind its last.
    """

    start: int
    end: int


def committed(cluster: Cluster, group_id: str, *, stable: bool = False) -> dict[Partition, Committed]:
    """
    All that the group has committed. UNSTABLE_OFFSET_COMMIT where a transaction might change it yet, to who wants what
    is `stable`.
    """
    asked = [OffsetFetchRequest.Group(group_id=group_id, topics=None)]
    request = OffsetFetchRequest(group_id=group_id, topics=None, groups=asked, require_stable=stable)
    connection = cluster.connection(cluster.coordinator(group_id))
    answer = connection.ask(request, OffsetFetchResponse, newest=_BY_NAME)
    group = answer.groups[0] if answer.groups else answer  # before v8 the answer is of one group
    refuse(group.error_code)
    return {
        Partition(topic.name, one.partition_index): Committed(one.committed_offset, one.metadata or "")
        for topic in group.topics
        for one in topic.partitions
        if _is_there(one.error_code, one.committed_offset)
    }


def _is_there(code: int, offset: int) -> bool:
    refuse(code)
    return offset != _NONE


class Membership(NamedTuple):
    """
    As whom something is committed.
    """

    member_id: str = ""
    generation: int = -1


NOBODY = Membership()


def commit(cluster: Cluster, group_id: str, offsets: Mapping[Partition, int], of: Membership = NOBODY) -> None:
    """
    Commit as a member or as nobody; then the group must have no members.
    """
    asked = [
        OffsetCommitRequest.Topic(
            name=name,
            partitions=[
                OffsetCommitRequest.Topic.Partition(
                    partition_index=one.index, committed_offset=offsets[one], committed_metadata=""
                )
                for one in partitions
            ],
        )
        for name, partitions in by_topic(offsets).items()
    ]
    connection = cluster.connection(cluster.coordinator(group_id))
    request = OffsetCommitRequest(
        group_id=group_id, generation_id_or_member_epoch=of.generation, member_id=of.member_id, topics=asked
    )
    answer = connection.ask(request, OffsetCommitResponse, _BY_NAME)
    for topic in answer.topics:
        for told in topic.partitions:
            refuse(told.error_code)


def partitions_of(cluster: Cluster, topics: Iterable[str]) -> dict[str, list[Partition]]:
    """
    The partitions of those of the topics that are there.
    """
    leaders = leaders_of(cluster, topics)
    return {name: sorted(partitions) for name, partitions in by_topic(leaders).items()}


def leaders_of(cluster: Cluster, topics: Iterable[str]) -> dict[Partition, Node]:
    """
    Who leads the partitions of those of the topics that are there; KafkaError where nobody does at the moment.
    """
    return _leaders(cluster.metadata(topics))


def found(cluster: Cluster, wanted: Iterable[Partition], timestamp_ms: int) -> dict[Partition, Found]:
    """
    In each log the first record of that time or later, or one of its ends. Partitions that are not there are left out.
    """
    wanted = set(wanted)
    if not wanted:
        return {}
    leaders = leaders_of(cluster, {partition.topic for partition in wanted})
    places: dict[Partition, Found] = {}
    asked = {partition: leader for partition, leader in leaders.items() if partition in wanted}
    for leader, partitions in by_leader(asked).items():
        places |= _found_at(cluster, leader, partitions, timestamp_ms)
    return places


def found_each(cluster: Cluster, leaders: Mapping[Partition, Node], timestamp_ms: int) -> dict[Partition, Found]:
    """
    The same in all logs of which there is word just now.
    """
    places: dict[Partition, Found] = {}
    for leader, partitions in by_leader(leaders).items():
        try:
            places |= _found_at(cluster, leader, partitions, timestamp_ms, strict=False)
        except Unanswered:
            continue
    return places


def extents(cluster: Cluster, wanted: Collection[Partition]) -> dict[Partition, Extent]:
    """
    What each log has. Partitions that are not there are left out.
    """
    starts, ends = found(cluster, wanted, EARLIEST), found(cluster, wanted, LATEST)
    return {one: Extent(starts[one].offset or 0, ends[one].offset or 0) for one in starts.keys() & ends.keys()}


def _found_at(
    cluster: Cluster, leader: Node, partitions: Iterable[Partition], timestamp_ms: int, strict: bool = True
) -> dict[Partition, Found]:
    asked = [
        ListOffsetsRequest.Topic(
            name=name,
            partitions=[
                ListOffsetsRequest.Topic.Partition(partition_index=one.index, timestamp=timestamp_ms) for one in group
            ],
        )
        for name, group in by_topic(partitions).items()
    ]
    request = ListOffsetsRequest(replica_id=_CONSUMER, topics=asked, timeout_ms=_PATIENCE_MS)
    answer = cluster.connection(leader).ask(request, ListOffsetsResponse)
    places = {}
    for topic in answer.topics:
        for told in topic.partitions:
            if told.error_code and not strict:
                continue
            refuse(told.error_code)
            place = Found(_known(told.offset), _known(told.timestamp))
            places[Partition(topic.name, told.partition_index)] = place
    return places


def _known(number: int) -> int | None:
    return None if number == _NONE else number


def _leaders(metadata: MetadataResponse) -> dict[Partition, Node]:
    nodes = {one.node_id: Node(one.node_id, Address(one.host, one.port)) for one in metadata.brokers}
    leaders = {}
    for topic in metadata.topics:
        if topic.error_code in _GONE:
            continue
        refuse(topic.error_code)
        for told in topic.partitions:
            partition = Partition(topic.name or "", told.partition_index)
            if told.leader_id not in nodes:
                raise KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, f"{partition} has no leader at the moment")
            leaders[partition] = nodes[told.leader_id]
    return leaders


def by_leader(leaders: Mapping[Partition, Node]) -> dict[Node, list[Partition]]:
    """
    What each server leads.
    """
    led: defaultdict[Node, list[Partition]] = defaultdict(list)
    for partition, leader in leaders.items():
        led[leader].append(partition)
    return led


def by_topic(partitions: Iterable[Partition]) -> dict[str, list[Partition]]:
    """
    The partitions of each topic.
    """
    topics: defaultdict[str, list[Partition]] = defaultdict(list)
    for partition in partitions:
        topics[partition.topic].append(partition)
    return topics
