"""
Fetch: reads record batches from partitions, for consumers and for followers.

 - v1: throttle_time_ms
 - v2: messages may be of magic 1, with timestamps (KIP-32)
 - v3: max_bytes for the whole answer; partitions are served in the order asked (KIP-74)
 - v4: magic 2; isolation_level, last_stable_offset, aborted_transactions (KIP-98)
 - v5: log_start_offset in request and response (KIP-107)
 - v6: KAFKA_STORAGE_ERROR may be answered (KIP-112)
 - v7: fetch sessions: session_id, session_epoch, forgotten_topics_data, error_code (KIP-227)
 - v8: over quota, the answer comes before the delay (KIP-219)
 - v9: current_leader_epoch fences clients with old metadata (KIP-320)
 - v10: records may be compressed with zstd (KIP-110)
 - v11: rack_id and preferred_read_replica: reading from a follower (KIP-392)
 - v12: flexible; last_fetched_epoch, diverging_epoch, current_leader (KIP-595); snapshot_id (KIP-630)
 - v13: topic_id in place of topic; UNKNOWN_TOPIC_ID (KIP-516)
 - v14: OFFSET_MOVED_TO_TIERED_STORAGE, answered to followers (KIP-405)
 - v15: replica_state, with the follower's epoch, in place of replica_id (KIP-903)
 - v16: node_endpoints: where to find a new leader (KIP-951)
 - v17: replica_directory_id, for KRaft voters (KIP-853)
 - v18: high_watermark as the follower knows it (KIP-1166)
"""

from kgateway.wire.schema import Message, Struct, v
from kgateway.wire.types import Records, i8, i16, i32, i64
from kgateway.wire.uuids import Uuid


class FetchRequest(Message, key=1, versions="0-18", flexible="12+"):
    class ReplicaState(Struct):
        replica_id: i32 = v(default=-1)
        replica_epoch: i64 = v(default=-1)

    class Topic(Struct):
        class Partition(Struct):
            partition: i32
            current_leader_epoch: i32 = v("9+", default=-1)
            fetch_offset: i64
            last_fetched_epoch: i32 = v("12+", default=-1)
            log_start_offset: i64 = v("5+", default=-1)
            partition_max_bytes: i32
            replica_directory_id: Uuid = v("17+", tag=0)
            high_watermark: i64 = v("18+", default=(1 << 63) - 1, tag=1)  # -1 not known yet; the default: not supported

        topic: str = v("0-12")
        topic_id: Uuid = v("13+")
        partitions: list[Partition]

    class ForgottenTopic(Struct):
        topic: str = v("7-12")
        topic_id: Uuid = v("13+")
        partitions: list[i32]

    cluster_id: str | None = v("12+", default=None, tag=0)
    replica_id: i32 = v("0-14", default=-1)  # -1 from a consumer
    replica_state: ReplicaState | None = v("15+", default=None, tag=1)
    max_wait_ms: i32
    min_bytes: i32
    max_bytes: i32 = v("3+", default=(1 << 31) - 1)
    isolation_level: i8 = v("4+")  # 0 read uncommitted, 1 read committed
    session_id: i32 = v("7+")
    session_epoch: i32 = v("7+", default=-1)  # 0 opens a session, -1 closes it or does without
    topics: list[Topic]
    forgotten_topics_data: list[ForgottenTopic] = v("7+")  # partitions to drop from the session
    rack_id: str = v("11+")


class FetchResponse(Message, key=1, versions="0-18", flexible="12+"):
    class Response(Struct):
        class Partition(Struct):
            class DivergingEpoch(Struct):
                epoch: i32 = v(default=-1)
                end_offset: i64 = v(default=-1)

            class CurrentLeader(Struct):
                leader_id: i32 = v(default=-1)
                leader_epoch: i32 = v(default=-1)

            class SnapshotId(Struct):
                end_offset: i64 = v(default=-1)
                epoch: i32 = v(default=-1)

            class AbortedTransaction(Struct):
                producer_id: i64
                first_offset: i64

            partition_index: i32
            error_code: i16
            high_watermark: i64
            last_stable_offset: i64 = v("4+", default=-1)
            log_start_offset: i64 = v("5+", default=-1)
            diverging_epoch: DivergingEpoch | None = v("12+", default=None, tag=0)
            current_leader: CurrentLeader | None = v("12+", default=None, tag=1)
            snapshot_id: SnapshotId | None = v("12+", default=None, tag=2)
            aborted_transactions: list[AbortedTransaction] | None = v("4+")  # null unless read committed
            preferred_read_replica: i32 = v("11+", default=-1)
            records: Records | None

        topic: str = v("0-12")
        topic_id: Uuid = v("13+")
        partitions: list[Partition]

    class NodeEndpoint(Struct):
        node_id: i32
        host: str
        port: i32
        rack: str | None = v(default=None)

    throttle_time_ms: i32 = v("1+")
    error_code: i16 = v("7+")
    session_id: i32 = v("7+")
    responses: list[Response]
    node_endpoints: list[NodeEndpoint] = v("16+", tag=0)
