"""
OffsetDelete: deletes offsets that a group has committed (KIP-496).

 - v0: the only one so far, and not flexible
"""

from kgateway.wire.schema import Message, Struct
from kgateway.wire.types import i16, i32


class OffsetDeleteRequest(Message, key=47, versions="0"):
    class Topic(Struct):
        class Partition(Struct):
            partition_index: i32

        name: str
        partitions: list[Partition]

    group_id: str
    topics: list[Topic]


class OffsetDeleteResponse(Message, key=47, versions="0"):
    class Topic(Struct):
        class Partition(Struct):
            partition_index: i32
            error_code: i16  # GROUP_SUBSCRIBED_TO_TOPIC while members read it

        name: str
        partitions: list[Partition]

    error_code: i16
    throttle_time_ms: i32
    topics: list[Topic]
