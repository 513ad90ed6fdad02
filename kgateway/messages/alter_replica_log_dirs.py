"""
AlterReplicaLogDirs: moves replicas from one disk of a broker to another.

 - v1: over quota, the answer comes before the delay (KIP-219)
 - v2: flexible
"""

from kgateway.wire.schema import Message, Struct
from kgateway.wire.types import i16, i32


class AlterReplicaLogDirsRequest(Message, key=34, versions="0-2", flexible="2+"):
    class Dir(Struct):
        class Topic(Struct):
            name: str
            partitions: list[i32]

        path: str  # absolute, one of the broker's log.dirs
        topics: list[Topic]

    dirs: list[Dir]


class AlterReplicaLogDirsResponse(Message, key=34, versions="0-2", flexible="2+"):
    """
    Whether the move of each replica has begun.
    """

    class Result(Struct):
        class Partition(Struct):
            partition_index: i32
            error_code: i16  # REPLICA_NOT_AVAILABLE: the choice is kept for later

        topic_name: str
        partitions: list[Partition]

    throttle_time_ms: i32
    results: list[Result]
