"""
ShareGroupHeartbeat: a member joins, lives in and leaves a share group (KIP-932).

 - v1: the first stable version; v0 was the preview of Kafka 4.0
"""

from kgateway.wire.schema import Message, Struct, v
from kgateway.wire.types import i16, i32
from kgateway.wire.uuids import Uuid


class TopicPartitions(Struct):
    topic_id: Uuid
    partitions: list[i32]


class ShareGroupHeartbeatRequest(Message, key=76, versions="1", flexible="0+"):
    """
    A member says it is alive and what it wants; null means as before.
    """

    group_id: str
    member_id: str  # made up by the member
    member_epoch: i32  # 0 joins, -1 leaves
    rack_id: str | None = v(default=None)
    subscribed_topic_names: list[str] | None = v(default=None)


class ShareGroupHeartbeatResponse(Message, key=76, versions="1", flexible="0+"):
    """
    The member's epoch, and the partitions it may fetch from.
    """

    class Assignment(Struct):
        topic_partitions: list[TopicPartitions]

    throttle_time_ms: i32
    error_code: i16
    error_message: str | None = v(default=None)
    member_id: str | None = v(default=None)
    member_epoch: i32
    heartbeat_interval_ms: i32
    assignment: Assignment | None = v(default=None)  # null: as before
