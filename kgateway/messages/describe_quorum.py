"""
DescribeQuorum: describes the leader, voters and observers of the KRaft quorum (KIP-595).

 - v1: last_fetch_timestamp, last_caught_up_timestamp (KIP-836)
 - v2: error_message, replica_directory_id, nodes (KIP-853)
"""

from kgateway.wire.schema import Message, Struct, v
from kgateway.wire.types import i16, i32, i64, u16
from kgateway.wire.uuids import Uuid


class ReplicaState(Struct):
    replica_id: i32
    replica_directory_id: Uuid = v("2+")
    log_end_offset: i64  # -1: unknown
    last_fetch_timestamp: i64 = v("1+", default=-1)  # ms, leader's clock; -1: the leader, or unknown
    last_caught_up_timestamp: i64 = v("1+", default=-1)  # ms, leader's clock; the leader: now; -1: unknown


class DescribeQuorumRequest(Message, key=55, versions="0-2", flexible="0+"):
    class Topic(Struct):
        class Partition(Struct):
            partition_index: i32

        topic_name: str
        partitions: list[Partition]

    topics: list[Topic]  # only __cluster_metadata, partition 0


class DescribeQuorumResponse(Message, key=55, versions="0-2", flexible="0+"):
    class Topic(Struct):
        class Partition(Struct):
            partition_index: i32
            error_code: i16
            error_message: str | None = v("2+")
            leader_id: i32  # -1: unknown
            leader_epoch: i32
            high_watermark: i64
            current_voters: list[ReplicaState]
            observers: list[ReplicaState]

        topic_name: str
        partitions: list[Partition]

    class Node(Struct):
        class Listener(Struct):
            name: str
            host: str
            port: u16

        node_id: i32
        listeners: list[Listener]

    error_code: i16
    error_message: str | None = v("2+")
    topics: list[Topic]
    nodes: list[Node] = v("2+")
