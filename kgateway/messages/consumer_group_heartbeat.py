"""
ConsumerGroupHeartbeat: lets a member join, stay in and leave a consumer group, and assigns partitions (KIP-848).

 - v1: subscribed_topic_regex (KIP-848); the member makes up its member_id (KIP-1082)
"""

from kgateway.wire.schema import Message, Struct, v
from kgateway.wire.types import i16, i32
from kgateway.wire.uuids import Uuid


class TopicPartitions(Struct):
    topic_id: Uuid
    partitions: list[i32]


class ConsumerGroupHeartbeatRequest(Message, key=68, versions="0-1", flexible="0+"):
    """
    A member says it is alive, what it wants and what it owns; null means as before.
    """

    class TopicPartition(Struct):
        topic_id: Uuid
        partitions: list[i32]

    group_id: str
    member_id: str  # v0: empty on joining, the coordinator makes one up
    member_epoch: i32  # 0 joins, -1 leaves, -2 leaves to rejoin (static)
    instance_id: str | None = v(default=None)
    rack_id: str | None = v(default=None)
    rebalance_timeout_ms: i32 = v(default=-1)  # -1: as before
    subscribed_topic_names: list[str] | None = v(default=None)
    subscribed_topic_regex: str | None = v("1+", default=None)
    server_assignor: str | None = v(default=None)  # null: as before, or the coordinator's choice
    topic_partitions: list[TopicPartition] | None = v(default=None)  # owned now; null: as before


class ConsumerGroupHeartbeatResponse(Message, key=68, versions="0-1", flexible="0+"):
    class Assignment(Struct):
        topic_partitions: list[TopicPartitions]

    throttle_time_ms: i32
    error_code: i16
    error_message: str | None = v(default=None)
    member_id: str | None = v(default=None)
    member_epoch: i32
    heartbeat_interval_ms: i32
    assignment: Assignment | None = v(default=None)  # null: as before
