"""
ShareGroupDescribe: the state and the members of share groups (KIP-932).

 - v1: the first stable version; v0 was the preview of Kafka 4.0
"""

from kgateway.messages.operations import UNKNOWN_OPERATIONS
from kgateway.wire.schema import Message, Struct, v
from kgateway.wire.types import i16, i32
from kgateway.wire.uuids import Uuid


class TopicPartitions(Struct):
    topic_id: Uuid
    topic_name: str
    partitions: list[i32]


class Assignment(Struct):
    topic_partitions: list[TopicPartitions]


class ShareGroupDescribeRequest(Message, key=77, versions="1", flexible="0+"):
    """
    Names the groups to describe.
    """

    group_ids: list[str]
    include_authorized_operations: bool


class ShareGroupDescribeResponse(Message, key=77, versions="1", flexible="0+"):
    """
    Each group with its epochs, its members and what they may fetch.
    """

    class Group(Struct):
        class Member(Struct):
            member_id: str
            rack_id: str | None = v(default=None)
            member_epoch: i32
            client_id: str
            client_host: str
            subscribed_topic_names: list[str]
            assignment: Assignment

        error_code: i16
        error_message: str | None = v(default=None)
        group_id: str
        group_state: str  # Empty, Stable, Dead; "" on error
        group_epoch: i32
        assignment_epoch: i32  # the group epoch the assignment was made for
        assignor_name: str
        members: list[Member]
        authorized_operations: i32 = v(default=UNKNOWN_OPERATIONS)  # bit n: AclOperation n is allowed

    throttle_time_ms: i32
    groups: list[Group]
