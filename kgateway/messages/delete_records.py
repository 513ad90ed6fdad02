"""
DeleteRecords: deletes the records of a partition before an offset.

 - v1: over quota, the answer comes before the delay (KIP-219)
 - v2: flexible
"""

from kgateway.wire.schema import Message, Struct
from kgateway.wire.types import i16, i32, i64


class DeleteRecordsRequest(Message, key=21, versions="0-2", flexible="2+"):
    """
    For each partition, the first offset to keep.
    """

    class Topic(Struct):
        class Partition(Struct):
            partition_index: i32
            offset: i64  # the first to keep; -1: the high watermark

        name: str
        partitions: list[Partition]

    topics: list[Topic]
    timeout_ms: i32


class DeleteRecordsResponse(Message, key=21, versions="0-2", flexible="2+"):
    """
    Where each partition begins now.
    """

    class Topic(Struct):
        class Partition(Struct):
            partition_index: i32
            low_watermark: i64  # least log start of live replicas; -1 with an error
            error_code: i16

        name: str
        partitions: list[Partition]

    throttle_time_ms: i32
    topics: list[Topic]
