"""
CreatePartitions: gives topics more partitions.

 - v1: over quota, the answer comes before the delay (KIP-219)
 - v2: flexible
 - v3: THROTTLING_QUOTA_EXCEEDED may be answered (KIP-599)
"""

from kgateway.wire.schema import Message, Struct, v
from kgateway.wire.types import i16, i32


class CreatePartitionsRequest(Message, key=37, versions="0-3", flexible="2+"):
    class Topic(Struct):
        class Assignment(Struct):
            broker_ids: list[i32]  # the first is the preferred leader

        name: str
        count: i32  # of all its partitions afterwards, not of the new ones
        assignments: list[Assignment] | None  # one for each new partition; null: the cluster chooses

    topics: list[Topic]
    timeout_ms: i32
    validate_only: bool


class CreatePartitionsResponse(Message, key=37, versions="0-3", flexible="2+"):
    class Result(Struct):
        name: str
        error_code: i16
        error_message: str | None = v(default=None)

    throttle_time_ms: i32
    results: list[Result]
