"""
OffsetForLeaderEpoch: finds the end of a leader epoch, so that a log can be truncated to it.

 - v1: leader_epoch in the response (KIP-279)
 - v2: current_leader_epoch (KIP-320); throttle_time_ms
 - v3: replica_id; DESCRIBE on the topic is now enough, so that consumers may ask
 - v4: flexible
"""

from kgateway.wire.schema import Message, Struct, v
from kgateway.wire.types import i16, i32, i64


class OffsetForLeaderEpochRequest(Message, key=23, versions="0-4", flexible="4+"):
    """
    For each partition, the epoch the sender's last record was written in.
    """

    class Topic(Struct):
        class Partition(Struct):
            partition: i32
            current_leader_epoch: i32 = v("2+", default=-1)  # -1: not checked
            leader_epoch: i32

        topic: str
        partitions: list[Partition]

    replica_id: i32 = v("3+", default=-2)  # -1 from a consumer, -2 from a debugging one
    topics: list[Topic]


class OffsetForLeaderEpochResponse(Message, key=23, versions="0-4", flexible="4+"):
    class Topic(Struct):
        class Partition(Struct):
            error_code: i16
            partition: i32
            leader_epoch: i32 = v("1+", default=-1)  # the largest not above the one asked for; -1: none
            end_offset: i64 = v(default=-1)  # the offset after its last record; -1 unknown

        topic: str
        partitions: list[Partition]

    throttle_time_ms: i32 = v("2+")
    topics: list[Topic]
