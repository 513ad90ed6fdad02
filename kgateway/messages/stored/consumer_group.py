"""
Records of `__consumer_offsets`: groups of the consumer protocol (KIP-848).
"""

from kgateway.wire.schema import Message, Struct, v
from kgateway.wire.types import i8, i32, i64
from kgateway.wire.uuids import Uuid


class TopicPartitions(Struct):
    topic_id: Uuid
    partitions: list[i32]
    assignment_epochs: list[i32] | None = v(nullable="0+", tag=0)  # of each partition; commits from before are fenced


class ConsumerGroupMetadataKey(Message, key=3, versions="0"):
    """
    Key of record type 3: one group of the consumer protocol (KIP-848).
    """

    group_id: str


class ConsumerGroupMetadataValue(Message, key=3, versions="0", flexible="0+"):
    """
    Value of record type 3: the epoch of a consumer group, and a hash of its topics.
    """

    epoch: i32
    metadata_hash: i64 = v(default=0, tag=0)  # a change means rebalance


class ConsumerGroupPartitionMetadataKey(Message, key=4, versions="0"):
    """
    Key of record type 4: the topics of one consumer group; gone since Kafka 4.1 (KIP-1101).
    """

    group_id: str


class ConsumerGroupPartitionMetadataValue(Message, key=4, versions="0", flexible="0+"):
    """
    Value of record type 4: the topics as the group last saw them; now a hash in type 3 (KIP-1101).
    """

    class Topic(Struct):
        class PartitionMetadata(Struct):
            partition: i32
            racks: list[str]

        topic_id: Uuid
        topic_name: str
        num_partitions: i32
        partition_metadata: list[PartitionMetadata]  # unused after Kafka 4.0; empty: no racks known

    topics: list[Topic]


class ConsumerGroupMemberMetadataKey(Message, key=5, versions="0"):
    """
    Key of record type 5: one member of a consumer group.
    """

    group_id: str
    member_id: str


class ConsumerGroupMemberMetadataValue(Message, key=5, versions="0", flexible="0+"):
    """
    Value of record type 5: who a member of a consumer group is and what it subscribes to.
    """

    class ClassicMemberMetadata(Struct):
        class SupportedProtocol(Struct):
            name: str
            metadata: bytes  # a ConsumerProtocolSubscription

        session_timeout_ms: i32
        supported_protocols: list[SupportedProtocol]

    instance_id: str | None
    rack_id: str | None
    client_id: str
    client_host: str
    subscribed_topic_names: list[str]
    subscribed_topic_regex: str | None
    rebalance_timeout_ms: i32 = v(default=-1)
    server_assignor: str | None  # null: the coordinator's choice
    classic_member_metadata: ClassicMemberMetadata | None = v(
        nullable="0+", default=None, tag=0
    )  # null: speaks the consumer protocol


class ConsumerGroupTargetAssignmentMetadataKey(Message, key=6, versions="0"):
    """
    Key of record type 6: the target assignment of one consumer group.
    """

    group_id: str


class ConsumerGroupTargetAssignmentMetadataValue(Message, key=6, versions="0", flexible="0+"):
    """
    Value of record type 6: the group epoch the targets were made for; written after them.
    """

    assignment_epoch: i32
    assignment_timestamp: i64 = v(default=0, tag=0)  # ms, 0: unknown (KIP-1263)


class ConsumerGroupTargetAssignmentMemberKey(Message, key=7, versions="0"):
    """
    Key of record type 7: the target of one member of a consumer group.
    """

    group_id: str
    member_id: str


class ConsumerGroupTargetAssignmentMemberValue(Message, key=7, versions="0", flexible="0+"):
    """
    Value of record type 7: the partitions a member is to own in the end.
    """

    class TopicPartition(Struct):
        topic_id: Uuid
        partitions: list[i32]

    topic_partitions: list[TopicPartition]


class ConsumerGroupCurrentMemberAssignmentKey(Message, key=8, versions="0"):
    """
    Key of record type 8: what one member of a consumer group owns now.
    """

    group_id: str
    member_id: str


class ConsumerGroupCurrentMemberAssignmentValue(Message, key=8, versions="0", flexible="0+"):
    """
    Value of record type 8: how far a member is on the way to its target.
    """

    member_epoch: i32
    previous_member_epoch: i32  # taken too, if the member missed the answer
    state: i8  # 0 stable, 1 has to revoke, 2 waits for others
    assigned_partitions: list[TopicPartitions]
    partitions_pending_revocation: list[TopicPartitions]


class ConsumerGroupRegularExpressionKey(Message, key=16, versions="0"):
    """
    Key of record type 16: a regular expression some members of a consumer group subscribe to.
    """

    group_id: str
    regular_expression: str


class ConsumerGroupRegularExpressionValue(Message, key=16, versions="0", flexible="0+"):
    """
    Value of record type 16: the topics the expression matched, and when.
    """

    topics: list[str]
    version: i64  # of the cluster metadata it was matched with
    timestamp: i64  # ms
