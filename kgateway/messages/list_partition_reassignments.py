"""
ListPartitionReassignments: lists the partition moves that are in progress.

 - v0: flexible (KIP-455)
"""

from kgateway.wire.schema import Message, Struct, v
from kgateway.wire.types import i16, i32


class ListPartitionReassignmentsRequest(Message, key=46, versions="0", flexible="0+"):
    class Topic(Struct):
        name: str
        partition_indexes: list[i32]

    timeout_ms: i32 = v(default=60000)
    topics: list[Topic] | None = v(default=None)  # null: all


class ListPartitionReassignmentsResponse(Message, key=46, versions="0", flexible="0+"):
    """
    The replicas that come and go, for each partition on the move.
    """

    class Topic(Struct):
        class Partition(Struct):
            partition_index: i32
            replicas: list[i32]  # with those being added and removed
            adding_replicas: list[i32]
            removing_replicas: list[i32]

        name: str
        partitions: list[Partition]

    throttle_time_ms: i32
    error_code: i16
    error_message: str | None
    topics: list[Topic]
