"""
TxnOffsetCommit: stores offsets of a group that take effect when the transaction commits.

 - v1: over quota, the answer comes before the delay (KIP-219)
 - v2: committed_leader_epoch (KIP-320)
 - v3: flexible; generation_id, member_id and group_instance_id fence old members (KIP-447)
 - v4: TRANSACTION_ABORTABLE may be answered (KIP-890)
 - v5: adds the group to the transaction by itself, without AddOffsetsToTxn (KIP-890)
"""

from kgateway.wire.schema import Message, Struct, v
from kgateway.wire.types import i16, i32, i64


class TxnOffsetCommitRequest(Message, key=28, versions="0-5", flexible="3+"):
    class Topic(Struct):
        class Partition(Struct):
            partition_index: i32
            committed_offset: i64
            committed_leader_epoch: i32 = v("2+", default=-1)  # -1 unknown
            committed_metadata: str | None  # the client's own note; null is kept as empty

        name: str
        partitions: list[Partition]

    transactional_id: str
    group_id: str
    producer_id: i64
    producer_epoch: i16
    generation_id: i32 = v("3+", default=-1)  # -1: not checked
    member_id: str = v("3+")  # empty: not checked
    group_instance_id: str | None = v("3+", default=None)
    topics: list[Topic]


class TxnOffsetCommitResponse(Message, key=28, versions="0-5", flexible="3+"):
    class Topic(Struct):
        class Partition(Struct):
            partition_index: i32
            error_code: i16

        name: str
        partitions: list[Partition]

    throttle_time_ms: i32
    topics: list[Topic]
