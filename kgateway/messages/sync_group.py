"""
SyncGroup: collects the assignments from the leader of a group, and sends each member its own.

 - v1: throttle_time_ms
 - v2: over quota, the answer comes before the delay (KIP-219)
 - v3: group_instance_id, for static membership (KIP-345)
 - v4: flexible
 - v5: protocol_type and protocol_name, checked against the group's (KIP-559)
"""

from kgateway.wire.schema import Message, Struct, v
from kgateway.wire.types import i16, i32


class SyncGroupRequest(Message, key=14, versions="0-5", flexible="4+"):
    """
    The leader sends the assignments of all members, the others none.
    """

    class Assignment(Struct):
        member_id: str
        assignment: bytes  # of a consumer: a ConsumerProtocolAssignment

    group_id: str
    generation_id: i32
    member_id: str
    group_instance_id: str | None = v("3+", default=None)
    protocol_type: str | None = v("5+", default=None)  # null: not checked
    protocol_name: str | None = v("5+", default=None)  # null: not checked
    assignments: list[Assignment]  # empty from all but the leader


class SyncGroupResponse(Message, key=14, versions="0-5", flexible="4+"):
    throttle_time_ms: i32 = v("1+")
    error_code: i16
    protocol_type: str | None = v("5+", default=None)
    protocol_name: str | None = v("5+", default=None)
    assignment: bytes
