"""
ElectLeaders: elects new leaders for partitions.

 - v0: preferred leaders only (KIP-183)
 - v1: election_type; a top-level error_code (KIP-460)
 - v2: flexible
"""

from kgateway.wire.schema import Message, Struct, v
from kgateway.wire.types import i8, i16, i32


class ElectLeadersRequest(Message, key=43, versions="0-2", flexible="2+"):
    class TopicPartition(Struct):
        topic: str
        partitions: list[i32]

    election_type: i8 = v("1+")  # 0 preferred, 1 unclean: any live replica if isr is gone
    topic_partitions: list[TopicPartition] | None  # null: all
    timeout_ms: i32 = v(default=60000)


class ElectLeadersResponse(Message, key=43, versions="0-2", flexible="2+"):
    class ReplicaElectionResult(Struct):
        class PartitionResult(Struct):
            partition_id: i32
            error_code: i16
            error_message: str | None

        topic: str
        partition_result: list[PartitionResult]

    throttle_time_ms: i32
    error_code: i16 = v("1+")
    replica_election_results: list[ReplicaElectionResult]  # empty when all were asked for and not allowed
