"""
Committed offsets of groups, and their lag.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from kgateway.client.cluster import Cluster, by_topic, refuse
from kgateway.client.groups import GroupDescription
from kgateway.client.offsets import LATEST, offsets_at
from kgateway.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from kgateway.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from kgateway.topic_partition import TopicPartition

_NONE = -1
_BY_NAME = 9  # the last version of OffsetFetch and OffsetCommit that names topics


class OffsetAndMetadata(NamedTuple):
    """
    A committed offset, which is the next one to read, and the client's own note.
    """

    offset: int
    metadata: str


class Membership(NamedTuple):
    member_id: str = ""
    generation: int = -1


NOBODY = Membership()


@dataclass(frozen=True, slots=True)
class PartitionLag:
    """
    A group's position in a partition. The group may have committed nothing, and the partition may be gone.
    """

    partition: TopicPartition
    committed: OffsetAndMetadata | None
    end: int | None
    member_id: str | None

    @property
    def lag(self) -> int | None:
        if self.committed is None or self.end is None:
            return None
        return max(self.end - self.committed.offset, 0)


def committed_offsets(
    cluster: Cluster, group_id: str, *, stable: bool = False
) -> dict[TopicPartition, OffsetAndMetadata]:
    """
    All offsets that the group has committed. With `stable`, UNSTABLE_OFFSET_COMMIT if an open transaction may still
    change one.
    """
    asked = [OffsetFetchRequest.Group(group_id=group_id, topics=None)]
    request = OffsetFetchRequest(group_id=group_id, topics=None, groups=asked, require_stable=stable)
    connection = cluster.connection(cluster.coordinator(group_id))
    answer = connection.ask(request, OffsetFetchResponse, newest=_BY_NAME)
    group = answer.groups[0] if answer.groups else answer  # before v8 the answer is of one group
    refuse(group.error_code)
    return {
        TopicPartition(topic.name, one.partition_index): OffsetAndMetadata(one.committed_offset, one.metadata or "")
        for topic in group.topics
        for one in topic.partitions
        if _is_there(one.error_code, one.committed_offset)
    }


def _is_there(code: int, offset: int) -> bool:
    refuse(code)
    return offset != _NONE


def commit_offsets(
    cluster: Cluster, group_id: str, offsets: Mapping[TopicPartition, int], member: Membership = NOBODY
) -> None:
    """
    Commit as a member, or without one: then the group must be empty.
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
        group_id=group_id, generation_id_or_member_epoch=member.generation, member_id=member.member_id, topics=asked
    )
    answer = connection.ask(request, OffsetCommitResponse, _BY_NAME)
    for topic in answer.topics:
        for one in topic.partitions:
            refuse(one.error_code)


def lags(cluster: Cluster, group: GroupDescription) -> list[PartitionLag]:
    """
    The lag of each partition of which the group has committed an offset, or which is assigned to one of its members.
    """
    offsets = committed_offsets(cluster, group.group_id)
    owners = {
        TopicPartition(topic, index): member.member_id
        for member in group.members
        for topic, indexes in (member.assigned or {}).items()
        for index in indexes
    }
    partitions = sorted(offsets.keys() | owners.keys())
    ends = {one: end.offset for one, end in offsets_at(cluster, partitions, LATEST).items()}
    return [PartitionLag(one, offsets.get(one), ends.get(one), owners.get(one)) for one in partitions]
