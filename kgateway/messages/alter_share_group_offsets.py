"""
AlterShareGroupOffsets: moves where an empty share group begins to read (KIP-932).
"""

from kgateway.wire.schema import Message, Struct, v
from kgateway.wire.types import i16, i32, i64
from kgateway.wire.uuids import Uuid


class AlterShareGroupOffsetsRequest(Message, key=91, versions="0", flexible="0+"):
    """
    The new start offset of each partition, for one group.
    """

    class Topic(Struct):
        class Partition(Struct):
            partition_index: i32
            start_offset: i64

        topic_name: str
        partitions: list[Partition]

    group_id: str
    topics: list[Topic]


class AlterShareGroupOffsetsResponse(Message, key=91, versions="0", flexible="0+"):
    """
    The outcome for each partition.
    """

    class Response(Struct):
        class Partition(Struct):
            partition_index: i32
            error_code: i16
            error_message: str | None = v(default=None)

        topic_name: str
        topic_id: Uuid
        partitions: list[Partition]

    throttle_time_ms: i32
    error_code: i16
    error_message: str | None = v(default=None)
    responses: list[Response]
