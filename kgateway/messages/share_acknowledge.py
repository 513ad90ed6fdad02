"""
ShareAcknowledge: says what became of acquired records, without fetching more (KIP-932).

 - v1: the first stable version; v0 was the preview of Kafka 4.0
 - v2: is_renew_ack, acknowledgement type 4, acquisition_lock_timeout_ms (KIP-1222)
"""

from kgateway.wire.schema import Message, Struct, v
from kgateway.wire.types import i8, i16, i32, i64
from kgateway.wire.uuids import Uuid


class ShareAcknowledgeRequest(Message, key=79, versions="1-2", flexible="0+"):
    """
    The fate of each acquired record, batch by batch.
    """

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
    """
    The outcome for each partition.
    """

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
