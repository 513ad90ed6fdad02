"""
ConsumerGroupDescribe: describes groups of the consumer protocol and their members (KIP-848).

 - v1: member_type (KIP-1099)
"""

from kgateway.messages.operations import UNKNOWN_OPERATIONS
from kgateway.wire.schema import Message, Struct, v
from kgateway.wire.types import i8, i16, i32
from kgateway.wire.uuids import Uuid


class TopicPartitions(Struct):
    topic_id: Uuid
    topic_name: str
    partitions: list[i32]


class Assignment(Struct):
    topic_partitions: list[TopicPartitions]


class ConsumerGroupDescribeRequest(Message, key=69, versions="0-1", flexible="0+"):
    group_ids: list[str]
    include_authorized_operations: bool


class ConsumerGroupDescribeResponse(Message, key=69, versions="0-1", flexible="0+"):
    class Group(Struct):
        class Member(Struct):
            member_id: str
            instance_id: str | None = v(default=None)
            rack_id: str | None = v(default=None)
            member_epoch: i32
            client_id: str
            client_host: str
            subscribed_topic_names: list[str]
            subscribed_topic_regex: str | None = v(default=None)
            assignment: Assignment  # owned now
            target_assignment: Assignment  # to be owned in the end
            member_type: i8 = v("1+", default=-1)  # -1 unknown, 0 classic, 1 consumer

        error_code: i16
        error_message: str | None = v(default=None)
        group_id: str
        group_state: str  # Empty, Assigning, Reconciling, Stable, Dead; "" on error
        group_epoch: i32
        assignment_epoch: i32  # the group epoch the targets were made for
        assignor_name: str
        members: list[Member]
        authorized_operations: i32 = v(default=UNKNOWN_OPERATIONS)  # bit n: AclOperation n is allowed

    throttle_time_ms: i32
    groups: list[Group]
