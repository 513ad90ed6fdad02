"""
Produce: appends record batches to partitions that this broker leads.

 - v0: message sets; Kafka 4 lists v0-2 for librdkafka's sake and refuses them (KAFKA-18659)
 - v1: throttle_time_ms
 - v2: log_append_time_ms; messages may carry timestamps, magic 1 (KIP-32)
 - v3: record batches, magic 2, and transactional_id (KIP-98)
 - v4: KAFKA_STORAGE_ERROR may be answered (KIP-112)
 - v5: log_start_offset, so that a producer can tell deleted records from lost ones
 - v6: over quota, the answer comes before the delay (KIP-219)
 - v7: records may be compressed with zstd (KIP-110)
 - v8: record_errors and error_message say which records were at fault (KIP-467)
 - v9: flexible
 - v10: current_leader and node_endpoints lead the client to a new leader (KIP-951)
 - v11: TRANSACTION_ABORTABLE may be answered (KIP-890)
 - v12: a transactional write adds its partition to the transaction by itself (KIP-890)
 - v13: topic_id in place of name; UNKNOWN_TOPIC_ID (KIP-516)
"""

from kgateway.wire.schema import Message, Struct, v
from kgateway.wire.types import Records, i16, i32, i64
from kgateway.wire.uuids import Uuid


class ProduceRequest(Message, key=0, versions="0-13", flexible="9+"):
    class TopicData(Struct):
        class PartitionData(Struct):
            index: i32
            records: Records | None  # from v3 on exactly one batch, of magic 2

        name: str = v("0-12")
        topic_id: Uuid = v("13+")
        partition_data: list[PartitionData]

    transactional_id: str | None = v("3+", default=None)
    acks: i16  # 0: no answer is sent; 1: the leader; -1: the whole isr
    timeout_ms: i32  # how long to wait for the isr when acks is -1
    topic_data: list[TopicData]


class ProduceResponse(Message, key=0, versions="0-13", flexible="9+"):
    class Response(Struct):
        class PartitionResponse(Struct):
            class RecordError(Struct):
                batch_index: i32  # position of the record in its batch
                batch_index_error_message: str | None = v(default=None)

            class CurrentLeader(Struct):
                leader_id: i32 = v(default=-1)
                leader_epoch: i32 = v(default=-1)

            index: i32
            error_code: i16
            base_offset: i64
            log_append_time_ms: i64 = v("2+", default=-1)  # -1: the producer's timestamps were kept
            log_start_offset: i64 = v("5+", default=-1)
            record_errors: list[RecordError] = v("8+")
            error_message: str | None = v("8+", default=None)
            current_leader: CurrentLeader | None = v("10+", default=None, tag=0)

        name: str = v("0-12")
        topic_id: Uuid = v("13+")
        partition_responses: list[PartitionResponse]

    class NodeEndpoint(Struct):
        node_id: i32
        host: str
        port: i32
        rack: str | None = v(default=None)

    responses: list[Response]
    throttle_time_ms: i32 = v("1+")
    node_endpoints: list[NodeEndpoint] = v("10+", tag=0)  # where to reach the brokers named in current_leader
