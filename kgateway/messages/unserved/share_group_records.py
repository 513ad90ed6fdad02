"""
Records of `__consumer_offsets`: share groups (KIP-932).
"""

from kgateway.wire.schema import Message, Struct, v
from kgateway.wire.types import i8, i32, i64
from kgateway.wire.uuids import Uuid


class TopicPartitions(Struct):
    topic_id: Uuid
    partitions: list[i32]


class TopicPartitionsInfo(Struct):
    topic_id: Uuid
    topic_name: str
    partitions: list[i32]


class TopicInfo(Struct):
    topic_id: Uuid
    topic_name: str


class ShareGroupMemberMetadataKey(Message, key=10, versions="0"):
    """
    Key of record type 10: one member of a share group.
    """

    group_id: str
    member_id: str


class ShareGroupMemberMetadataValue(Message, key=10, versions="0", flexible="0+"):
    """
    Value of record type 10: who a member of a share group is and what it subscribes to.
    """

    rack_id: str | None
    client_id: str
    client_host: str
    subscribed_topic_names: list[str]


class ShareGroupMetadataKey(Message, key=11, versions="0"):
    """
    Key of record type 11: one share group (KIP-932).
    """

    group_id: str


class ShareGroupMetadataValue(Message, key=11, versions="0", flexible="0+"):
    """
    Value of record type 11: the epoch of a share group, and a hash of its topics.
    """

    epoch: i32
    metadata_hash: i64  # a change means rebalance


class ShareGroupTargetAssignmentMetadataKey(Message, key=12, versions="0"):
    """
    Key of record type 12: the target assignment of one share group.
    """

    group_id: str


class ShareGroupTargetAssignmentMetadataValue(Message, key=12, versions="0", flexible="0+"):
    """
    Value of record type 12: the group epoch the targets were made for; written after them.
    """

    assignment_epoch: i32
    assignment_timestamp: i64 = v(default=0, tag=0)  # ms, 0: unknown (KIP-1263)


class ShareGroupTargetAssignmentMemberKey(Message, key=13, versions="0"):
    """
    Key of record type 13: the target of one member of a share group.
    """

    group_id: str
    member_id: str


class ShareGroupTargetAssignmentMemberValue(Message, key=13, versions="0", flexible="0+"):
    """
    Value of record type 13: the partitions a member is to fetch from.
    """

    class TopicPartition(Struct):
        topic_id: Uuid
        partitions: list[i32]

    topic_partitions: list[TopicPartition]


class ShareGroupCurrentMemberAssignmentKey(Message, key=14, versions="0"):
    """
    Key of record type 14: what one member of a share group has now.
    """

    group_id: str
    member_id: str


class ShareGroupCurrentMemberAssignmentValue(Message, key=14, versions="0", flexible="0+"):
    """
    Value of record type 14: the partitions a member was last told; others may have them too.
    """

    member_epoch: i32
    previous_member_epoch: i32  # taken too, if the member missed the answer
    state: i8  # 0 stable, the only one here
    assigned_partitions: list[TopicPartitions]


class ShareGroupStatePartitionMetadataKey(Message, key=15, versions="0"):
    """
    Key of record type 15: which partitions of one share group have share state.
    """

    group_id: str


class ShareGroupStatePartitionMetadataValue(Message, key=15, versions="0", flexible="0+"):
    """
    Value of record type 15: where share state is being made, is there, or is being deleted.
    """

    initializing_topics: list[TopicPartitionsInfo]
    initialized_topics: list[TopicPartitionsInfo]
    deleting_topics: list[TopicInfo]
