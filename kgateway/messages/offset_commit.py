"""
OffsetCommit: stores how far a group has read.

 - v0: the offsets went to ZooKeeper
 - v1: kept by the coordinator; generation, member_id and commit_timestamp
 - v2: retention_time_ms for the request in place of commit_timestamp
 - v3: throttle_time_ms
 - v4: over quota, the answer comes before the delay (KIP-219)
 - v5: no retention_time_ms any more, the broker decides (KIP-211)
 - v6: committed_leader_epoch (KIP-320)
 - v7: group_instance_id, for static membership (KIP-345)
 - v8: flexible
 - v9: members of the new protocol send their epoch; STALE_MEMBER_EPOCH (KIP-848)
 - v10: topic_id in place of name (KIP-848)
"""

from kgateway.wire.schema import Message, Struct, v
from kgateway.wire.types import i16, i32, i64
from kgateway.wire.uuids import Uuid


class OffsetCommitRequest(Message, key=8, versions="0-10", flexible="8+"):
    """
    Comes from a member of a group, or from a consumer that has only a group id.
    """

    class Topic(Struct):
        class Partition(Struct):
            partition_index: i32
            committed_offset: i64
            committed_leader_epoch: i32 = v("6+", default=-1)  # -1 unknown
            commit_timestamp: i64 = v("1", default=-1)  # ms; -1: when the broker receives it
            committed_metadata: str | None  # the client's own note; null is kept as empty

        name: str = v("0-9")
        topic_id: Uuid = v("10+")
        partitions: list[Partition]

    group_id: str
    generation_id_or_member_epoch: i32 = v("1+", default=-1)  # -1 from a consumer that is no member
    member_id: str = v("1+")  # empty from a consumer that is no member
    group_instance_id: str | None = v("7+", default=None)
    retention_time_ms: i64 = v("2-4", default=-1)  # -1: as the broker is configured
    topics: list[Topic]


class OffsetCommitResponse(Message, key=8, versions="0-10", flexible="8+"):
    class Topic(Struct):
        class Partition(Struct):
            partition_index: i32
            error_code: i16

        name: str = v("0-9")
        topic_id: Uuid = v("10+")
        partitions: list[Partition]

    throttle_time_ms: i32 = v("3+")
    topics: list[Topic]
