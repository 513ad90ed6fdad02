"""
ListOffsets: finds an offset in a partition by timestamp, or at one of its ends.

 - v0: up to max_num_offsets segment starts before the timestamp, as old_style_offsets
 - v1: one offset and its timestamp, found by the time index (KIP-79)
 - v2: isolation_level (KIP-98); throttle_time_ms
 - v3: over quota, the answer comes before the delay (KIP-219)
 - v4: current_leader_epoch, and leader_epoch of the offset found (KIP-320)
 - v5: OFFSET_NOT_AVAILABLE while a new leader's high watermark lags (KIP-207)
 - v6: flexible
 - v7: timestamp -3: the record with the largest timestamp (KIP-734)
 - v8: timestamp -4: the first offset on local disk (KIP-405)
 - v9: timestamp -5: the last offset in tiered storage (KIP-1005)
 - v10: timeout_ms for lookups in tiered storage (KIP-1075)
 - v11: timestamp -6: the first offset not yet in tiered storage (KIP-1023)
"""

from kgateway.wire.schema import Message, Struct, v
from kgateway.wire.types import i8, i16, i32, i64


class ListOffsetsRequest(Message, key=2, versions="0-11", flexible="6+"):
    """
    A timestamp, or a special value for one, for each partition.
    """

    class Topic(Struct):
        class Partition(Struct):
            partition_index: i32
            current_leader_epoch: i32 = v("4+", default=-1)  # -1: not checked
            timestamp: i64  # ms; -1 latest, -2 earliest, -3 to -6 as noted above
            max_num_offsets: i32 = v("0", default=1)

        name: str
        partitions: list[Partition]

    replica_id: i32  # -1 from a consumer, -2 from a debugging one
    isolation_level: i8 = v("2+")  # 0 read uncommitted, 1 read committed: latest is the lso
    topics: list[Topic]
    timeout_ms: i32 = v("10+")


class ListOffsetsResponse(Message, key=2, versions="0-11", flexible="6+"):
    class Topic(Struct):
        class Partition(Struct):
            partition_index: i32
            error_code: i16
            old_style_offsets: list[i64] = v("0")
            timestamp: i64 = v("1+", default=-1)  # -1 when latest or earliest was asked for
            offset: i64 = v("1+", default=-1)  # -1: no record that late
            leader_epoch: i32 = v("4+", default=-1)

        name: str
        partitions: list[Partition]

    throttle_time_ms: i32 = v("2+")
    topics: list[Topic]
