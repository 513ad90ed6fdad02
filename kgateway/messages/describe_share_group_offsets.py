"""
DescribeShareGroupOffsets: where share groups begin to read each partition (KIP-932).

 - v1: lag (KIP-1226)
"""

from kgateway.wire.schema import Message, Struct, v
from kgateway.wire.types import i16, i32, i64
from kgateway.wire.uuids import Uuid


class DescribeShareGroupOffsetsRequest(Message, key=90, versions="0-1", flexible="0+"):
    """
    Names the groups, and the partitions of each.
    """

    class Group(Struct):
        class Topic(Struct):
            topic_name: str
            partitions: list[i32]

        group_id: str
        topics: list[Topic] | None  # null: all

    groups: list[Group]


class DescribeShareGroupOffsetsResponse(Message, key=90, versions="0-1", flexible="0+"):
    """
    The start offset of each partition, for each group.
    """

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
