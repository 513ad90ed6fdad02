"""
ShareFetch: acquires records for a member of a share group, and acknowledges others (KIP-932).

 - v1: the first stable version: max_records, batch_size, acquisition_lock_timeout_ms
 - v2: share_acquire_mode (KIP-1206); is_renew_ack and acknowledgement type 4 (KIP-1222)
"""

from kgateway.wire.schema import Message, Struct, v
from kgateway.wire.types import Records, i8, i16, i32, i64
from kgateway.wire.uuids import Uuid


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
    """
    The records, and which of them this member now holds.
    """

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
