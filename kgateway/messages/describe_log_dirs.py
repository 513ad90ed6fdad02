"""
DescribeLogDirs: describes the log directories of a broker and their partitions.

 - v1: over quota, the answer comes before the delay (KIP-219)
 - v2: flexible
 - v3: a top-level error_code (KIP-784)
 - v4: total_bytes and usable_bytes (KIP-827)
 - v5: is_cordoned (KIP-1066)
"""

from kgateway.wire.schema import Message, Struct, v
from kgateway.wire.types import i16, i32, i64


class DescribeLogDirsRequest(Message, key=35, versions="0-5", flexible="2+"):
    class Topic(Struct):
        topic: str
        partitions: list[i32]

    topics: list[Topic] | None  # null: all


class DescribeLogDirsResponse(Message, key=35, versions="0-5", flexible="2+"):
    class Result(Struct):
        class Topic(Struct):
            class Partition(Struct):
                partition_index: i32
                partition_size: i64  # bytes of all segments
                offset_lag: i64  # behind the high watermark, or the log it will replace
                is_future_key: bool  # a copy on its way here from another directory

            name: str
            partitions: list[Partition]

        error_code: i16
        log_dir: str
        topics: list[Topic]
        total_bytes: i64 = v("4+", default=-1)  # of the volume; -1 unknown
        usable_bytes: i64 = v("4+", default=-1)
        is_cordoned: bool = v("5+")  # takes no new replicas

    throttle_time_ms: i32
    error_code: i16 = v("3+")
    results: list[Result]
