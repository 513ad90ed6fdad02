"""
Metadata: lists the brokers of the cluster and the leaders of partitions.

 - v1: controller_id, rack, is_internal; an empty list of topics no longer means all, null does
 - v2: cluster_id (KIP-78)
 - v3: throttle_time_ms
 - v4: allow_auto_topic_creation; before, every request allowed it
 - v5: offline_replicas (KIP-112)
 - v6: over quota, the answer comes before the delay (KIP-219)
 - v7: leader_epoch (KIP-320)
 - v8: authorized operations of topics and the cluster, on request (KIP-430)
 - v9: flexible
 - v10: topic_id; requests may not use it before v12 (KIP-516)
 - v11: no cluster operations any more, DescribeCluster has them (KIP-700)
 - v12: topics may be asked for by topic_id (KIP-516)
 - v13: a top-level error_code, for REBOOTSTRAP_REQUIRED (KIP-1102)
"""

from kgateway.messages.operations import UNKNOWN_OPERATIONS
from kgateway.wire.schema import Message, Struct, v
from kgateway.wire.types import i16, i32
from kgateway.wire.uuids import Uuid


class MetadataRequest(Message, key=3, versions="0-13", flexible="9+"):
    class Topic(Struct):
        topic_id: Uuid = v("10+")
        name: str | None = v(nullable="10+")  # null if topic_id is given

    topics: list[Topic] | None = v(nullable="1+")  # null: all topics; empty: none (in v0: all)
    allow_auto_topic_creation: bool = v("4+", default=True)
    include_cluster_authorized_operations: bool = v("8-10")
    include_topic_authorized_operations: bool = v("8+")


class MetadataResponse(Message, key=3, versions="0-13", flexible="9+"):
    class Broker(Struct):
        node_id: i32
        host: str
        port: i32
        rack: str | None = v("1+", default=None)

    class Topic(Struct):
        class Partition(Struct):
            error_code: i16
            partition_index: i32
            leader_id: i32  # -1: no leader
            leader_epoch: i32 = v("7+", default=-1)
            replica_nodes: list[i32]
            isr_nodes: list[i32]
            offline_replicas: list[i32] = v("5+")

        error_code: i16
        name: str | None = v(nullable="12+")  # null: no topic has this topic_id
        topic_id: Uuid = v("10+")
        is_internal: bool = v("1+")
        partitions: list[Partition]
        # bit n for ACL operation n; the default: not asked for
        topic_authorized_operations: i32 = v("8+", default=UNKNOWN_OPERATIONS)

    throttle_time_ms: i32 = v("3+")
    brokers: list[Broker]
    cluster_id: str | None = v("2+", default=None)
    controller_id: i32 = v("1+", default=-1)  # -1 unknown; with KRaft, any broker that is up
    topics: list[Topic]
    cluster_authorized_operations: i32 = v("8-10", default=UNKNOWN_OPERATIONS)
    error_code: i16 = v("13+")
