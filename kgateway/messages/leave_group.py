"""
LeaveGroup: removes members from a group without waiting for their session timeout.

 - v1: throttle_time_ms
 - v2: over quota, the answer comes before the delay (KIP-219)
 - v3: members: several at a time, also by group_instance_id (KIP-345)
 - v4: flexible
 - v5: reason (KIP-800)
"""

from kgateway.wire.schema import Message, Struct, v
from kgateway.wire.types import i16, i32


class LeaveGroupRequest(Message, key=13, versions="0-5", flexible="4+"):
    class Member(Struct):
        member_id: str  # empty: group_instance_id alone names the member
        group_instance_id: str | None = v(default=None)
        reason: str | None = v("5+", default=None)

    group_id: str
    member_id: str = v("0-2")
    members: list[Member] = v("3+")


class LeaveGroupResponse(Message, key=13, versions="0-5", flexible="4+"):
    class Member(Struct):
        member_id: str
        group_instance_id: str | None
        error_code: i16

    throttle_time_ms: i32 = v("1+")
    error_code: i16
    members: list[Member] = v("3+")
