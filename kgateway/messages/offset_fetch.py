"""
OffsetFetch: reads the offsets that a group has committed.

 - v0: the offsets came from ZooKeeper
 - v1: from the coordinator
 - v2: null topics means all; a top-level error_code (KIP-88)
 - v3: throttle_time_ms
 - v4: over quota, the answer comes before the delay (KIP-219)
 - v5: committed_leader_epoch (KIP-320)
 - v6: flexible
 - v7: require_stable, and UNSTABLE_OFFSET_COMMIT in answer to it (KIP-447)
 - v8: groups: several groups at a time (KIP-709)
 - v9: member_id and member_epoch of the new protocol; STALE_MEMBER_EPOCH (KIP-848)
 - v10: topic_id in place of name (KIP-848)
"""

from kgateway.wire.schema import Message, Struct, v
from kgateway.wire.types import i16, i32, i64
from kgateway.wire.uuids import Uuid


class OffsetFetchRequest(Message, key=9, versions="0-10", flexible="6+"):
    class Topic(Struct):
        name: str
        partition_indexes: list[i32]

    class Group(Struct):
        class Topic(Struct):
            name: str = v("8-9")
            topic_id: Uuid = v("10+")
            partition_indexes: list[i32]

        group_id: str
        member_id: str | None = v("9+", default=None)
        member_epoch: i32 = v("9+", default=-1)  # -1: not a member under KIP-848, not checked
        topics: list[Topic] | None  # null: all with a commit

    group_id: str = v("0-7")
    topics: list[Topic] | None = v("0-7", nullable="2-7")  # null: all with a commit
    groups: list[Group] = v("8+")
    require_stable: bool = v("7+")  # fail partitions with a transactional commit pending


class OffsetFetchResponse(Message, key=9, versions="0-10", flexible="6+"):
    class Topic(Struct):
        class Partition(Struct):
            partition_index: i32
            committed_offset: i64  # -1: nothing committed
            committed_leader_epoch: i32 = v("5-7", default=-1)
            metadata: str | None
            error_code: i16

        name: str
        partitions: list[Partition]

    class Group(Struct):
        class Topic(Struct):
            class Partition(Struct):
                partition_index: i32
                committed_offset: i64  # -1: nothing committed
                committed_leader_epoch: i32 = v(default=-1)
                metadata: str | None
                error_code: i16

            name: str = v("8-9")
            topic_id: Uuid = v("10+")
            partitions: list[Partition]

        group_id: str
        topics: list[Topic]
        error_code: i16 = v(default=0)

    throttle_time_ms: i32 = v("3+")
    topics: list[Topic] = v("0-7")
    error_code: i16 = v("2-7")
    groups: list[Group] = v("8+")
