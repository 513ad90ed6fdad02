"""
AlterPartitionReassignments: moves partitions to other brokers, or cancels a move.

 - v0: flexible (KIP-455)
 - v1: allow_replication_factor_change (KIP-860)
"""

from kgateway.wire.schema import Message, Struct, v
from kgateway.wire.types import i16, i32


class AlterPartitionReassignmentsRequest(Message, key=45, versions="0-1", flexible="0+"):
    class Topic(Struct):
        class Partition(Struct):
            partition_index: i32
            replicas: list[i32] | None = v(default=None)  # null: call off the move under way

        name: str
        partitions: list[Partition]

    timeout_ms: i32 = v(default=60000)
    allow_replication_factor_change: bool = v("1+", default=True)  # false: refuse more or fewer replicas
    topics: list[Topic]


class AlterPartitionReassignmentsResponse(Message, key=45, versions="0-1", flexible="0+"):
    class Response(Struct):
        class Partition(Struct):
            partition_index: i32
            error_code: i16
            error_message: str | None

        name: str
        partitions: list[Partition]

    throttle_time_ms: i32
    allow_replication_factor_change: bool = v("1+", default=True)
    error_code: i16
    error_message: str | None
    responses: list[Response]
