"""
ShareGroupHeartbeat: lets a member join, stay in and leave a share group (KIP-932).

 - v1: the first stable version; v0 was the preview of Kafka 4.0

ShareGroupDescribe: describes share groups and their members (KIP-932).

 - v1: the first stable version; v0 was the preview of Kafka 4.0

ShareFetch: acquires records for a member of a share group, and acknowledges earlier ones (KIP-932).

 - v1: the first stable version: max_records, batch_size, acquisition_lock_timeout_ms
 - v2: share_acquire_mode (KIP-1206); is_renew_ack and acknowledgement type 4 (KIP-1222)

ShareAcknowledge: acknowledges acquired records without fetching more (KIP-932).

 - v1: the first stable version; v0 was the preview of Kafka 4.0
 - v2: is_renew_ack, acknowledgement type 4, acquisition_lock_timeout_ms (KIP-1222)

DescribeShareGroupOffsets: describes where share groups begin to read partitions (KIP-932).

 - v1: lag (KIP-1226)

AlterShareGroupOffsets: sets where an empty share group begins to read (KIP-932).

DeleteShareGroupOffsets: deletes the offsets of an empty share group for given topics (KIP-932).
"""

from kgateway.messages.operations import UNKNOWN_OPERATIONS
from kgateway.wire.schema import Message, Struct, v
from kgateway.wire.types import Records, i8, i16, i32, i64
from kgateway.wire.uuids import Uuid


class TopicPartitions(Struct):
    topic_id: Uuid
    partitions: list[i32]


class ShareGroupHeartbeatRequest(Message, key=76, versions="1", flexible="0+"):
    """
    A member says it is alive and what it wants; null means as before.
    """

    group_id: str
    member_id: str  # made up by the member
    member_epoch: i32  # 0 joins, -1 leaves
    rack_id: str | None = v(default=None)
    subscribed_topic_names: list[str] | None = v(default=None)


class ShareGroupHeartbeatResponse(Message, key=76, versions="1", flexible="0+"):
    class Assignment(Struct):
        topic_partitions: list[TopicPartitions]

    throttle_time_ms: i32
    error_code: i16
    error_message: str | None = v(default=None)
    member_id: str | None = v(default=None)
    member_epoch: i32
    heartbeat_interval_ms: i32
    assignment: Assignment | None = v(default=None)  # null: as before


class NamedTopicPartitions(Struct):
    topic_id: Uuid
    topic_name: str
    partitions: list[i32]


class Assignment(Struct):
    topic_partitions: list[NamedTopicPartitions]


class ShareGroupDescribeRequest(Message, key=77, versions="1", flexible="0+"):
    group_ids: list[str]
    include_authorized_operations: bool


class ShareGroupDescribeResponse(Message, key=77, versions="1", flexible="0+"):
    class Group(Struct):
        class Member(Struct):
            member_id: str
            rack_id: str | None = v(default=None)
            member_epoch: i32
            client_id: str
            client_host: str
            subscribed_topic_names: list[str]
            assignment: Assignment

        error_code: i16
        error_message: str | None = v(default=None)
        group_id: str
        group_state: str  # Empty, Stable, Dead; "" on error
        group_epoch: i32
        assignment_epoch: i32  # the group epoch the assignment was made for
        assignor_name: str
        members: list[Member]
        authorized_operations: i32 = v(default=UNKNOWN_OPERATIONS)  # bit n: AclOperation n is allowed

    throttle_time_ms: i32
    groups: list[Group]


class ShareFetchRequest(Message, key=78, versions="1-2", flexible="0+"):
    """
    Asks for records to work on, and says what became of those acquired before.
    """

    class Topic(Struct):
        class Partition(Struct):
            class AcknowledgementBatch(Struct):
                first_offset: i64
                last_offset: i64  # inclusive
                acknowledge_types: list[i8]  # 0 gap, 1 accept, 2 release, 3 reject, 4 renew

            partition_index: i32
            partition_max_bytes: i32 = v("none")
            acknowledgement_batches: list[AcknowledgementBatch]

        topic_id: Uuid
        partitions: list[Partition]

    class ForgottenTopic(Struct):
        topic_id: Uuid
        partitions: list[i32]

    group_id: str | None = v(default=None)
    member_id: str | None
    share_session_epoch: i32  # 0 opens, -1 closes, else one more than the last
    max_wait_ms: i32
    min_bytes: i32
    max_bytes: i32 = v(default=(1 << 31) - 1)
    max_records: i32
    batch_size: i32
    share_acquire_mode: i8 = v("2+")  # 0: whole batches; 1: never more than max_records
    is_renew_ack: bool = v("2+")
    topics: list[Topic]
    forgotten_topics_data: list[ForgottenTopic]


class ShareFetchResponse(Message, key=78, versions="1-2", flexible="0+"):
    class Response(Struct):
        class Partition(Struct):
            class CurrentLeader(Struct):
                leader_id: i32
                leader_epoch: i32

            class AcquiredRecord(Struct):
                first_offset: i64
                last_offset: i64
                delivery_count: i16

            partition_index: i32
            error_code: i16
            error_message: str | None = v(default=None)
            acknowledge_error_code: i16
            acknowledge_error_message: str | None = v(default=None)
            current_leader: CurrentLeader
            records: Records  # only those in acquired_records count
            acquired_records: list[AcquiredRecord]

        topic_id: Uuid
        partitions: list[Partition]

    class NodeEndpoint(Struct):
        node_id: i32
        host: str
        port: i32
        rack: str | None = v(default=None)

    throttle_time_ms: i32
    error_code: i16
    error_message: str | None = v(default=None)
    acquisition_lock_timeout_ms: i32
    responses: list[Response]
    node_endpoints: list[NodeEndpoint]  # leaders, for NOT_LEADER_OR_FOLLOWER


class ShareAcknowledgeRequest(Message, key=79, versions="1-2", flexible="0+"):
    class Topic(Struct):
        class Partition(Struct):
            class AcknowledgementBatch(Struct):
                first_offset: i64
                last_offset: i64  # inclusive
                acknowledge_types: list[i8]  # 0 gap, 1 accept, 2 release, 3 reject, 4 renew

            partition_index: i32
            acknowledgement_batches: list[AcknowledgementBatch]

        topic_id: Uuid
        partitions: list[Partition]

    group_id: str | None = v(default=None)
    member_id: str | None
    share_session_epoch: i32  # -1 closes, else one more than the last
    is_renew_ack: bool = v("2+")
    topics: list[Topic]


class ShareAcknowledgeResponse(Message, key=79, versions="1-2", flexible="0+"):
    class Response(Struct):
        class Partition(Struct):
            class CurrentLeader(Struct):
                leader_id: i32  # -1: unknown
                leader_epoch: i32

            partition_index: i32
            error_code: i16
            error_message: str | None = v(default=None)
            current_leader: CurrentLeader

        topic_id: Uuid
        partitions: list[Partition]

    class NodeEndpoint(Struct):
        node_id: i32
        host: str
        port: i32
        rack: str | None = v(default=None)

    throttle_time_ms: i32
    error_code: i16
    error_message: str | None = v(default=None)
    acquisition_lock_timeout_ms: i32 = v("2+")
    responses: list[Response]
    node_endpoints: list[NodeEndpoint]  # leaders, for NOT_LEADER_OR_FOLLOWER


class DescribeShareGroupOffsetsRequest(Message, key=90, versions="0-1", flexible="0+"):
    class Group(Struct):
        class Topic(Struct):
            topic_name: str
            partitions: list[i32]

        group_id: str
        topics: list[Topic] | None  # null: all

    groups: list[Group]


class DescribeShareGroupOffsetsResponse(Message, key=90, versions="0-1", flexible="0+"):
    class Group(Struct):
        class Topic(Struct):
            class Partition(Struct):
                partition_index: i32
                start_offset: i64  # -1: not initialized
                leader_epoch: i32
                lag: i64 = v("1+", default=-1)  # -1: unknown
                error_code: i16
                error_message: str | None = v(default=None)

            topic_name: str
            topic_id: Uuid
            partitions: list[Partition]

        group_id: str
        topics: list[Topic]
        error_code: i16
        error_message: str | None = v(default=None)

    throttle_time_ms: i32
    groups: list[Group]


class AlterShareGroupOffsetsRequest(Message, key=91, versions="0", flexible="0+"):
    class Topic(Struct):
        class Partition(Struct):
            partition_index: i32
            start_offset: i64

        topic_name: str
        partitions: list[Partition]

    group_id: str
    topics: list[Topic]


class AlterShareGroupOffsetsResponse(Message, key=91, versions="0", flexible="0+"):
    class Response(Struct):
        class Partition(Struct):
            partition_index: i32
            error_code: i16
            error_message: str | None = v(default=None)

        topic_name: str
        topic_id: Uuid
        partitions: list[Partition]

    throttle_time_ms: i32
    error_code: i16
    error_message: str | None = v(default=None)
    responses: list[Response]


class DeleteShareGroupOffsetsRequest(Message, key=92, versions="0", flexible="0+"):
    class Topic(Struct):
        topic_name: str

    group_id: str
    topics: list[Topic]


class DeleteShareGroupOffsetsResponse(Message, key=92, versions="0", flexible="0+"):
    class Response(Struct):
        topic_name: str
        topic_id: Uuid
        error_code: i16
        error_message: str | None = v(default=None)

    throttle_time_ms: i32
    error_code: i16
    error_message: str | None = v(default=None)
    responses: list[Response]
