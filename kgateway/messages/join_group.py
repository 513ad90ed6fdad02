"""
JoinGroup: adds a member to a group, or lets it rejoin for a rebalance.

 - v1: rebalance_timeout_ms apart from the session's (KIP-62)
 - v2: throttle_time_ms
 - v3: over quota, the answer comes before the delay (KIP-219)
 - v4: a new member gets its id with MEMBER_ID_REQUIRED and joins again with it (KIP-394)
 - v5: group_instance_id, for static membership (KIP-345)
 - v6: flexible
 - v7: protocol_type in the response; protocol_name may be null (KIP-559)
 - v8: reason (KIP-800)
 - v9: skip_assignment, for a static leader that comes back (KIP-814)
"""

from kgateway.wire.schema import Message, Struct, v
from kgateway.wire.types import i16, i32


class JoinGroupRequest(Message, key=11, versions="0-9", flexible="6+"):
    class Protocol(Struct):
        name: str
        metadata: bytes  # of a consumer: a ConsumerProtocolSubscription

    group_id: str
    session_timeout_ms: i32
    rebalance_timeout_ms: i32 = v("1+", default=-1)  # -1, from v0: session_timeout_ms serves for both
    member_id: str  # empty the first time
    group_instance_id: str | None = v("5+", default=None)
    protocol_type: str
    protocols: list[Protocol]  # in order of preference
    reason: str | None = v("8+", default=None)


class JoinGroupResponse(Message, key=11, versions="0-9", flexible="6+"):
    """
    The leader also gets the members that it has to assign partitions to.
    """

    class Member(Struct):
        member_id: str
        group_instance_id: str | None = v("5+", default=None)
        metadata: bytes

    throttle_time_ms: i32 = v("2+")
    error_code: i16
    generation_id: i32 = v(default=-1)
    protocol_type: str | None = v("7+", default=None)
    protocol_name: str | None = v(nullable="7+")
    leader: str  # the leader's member_id
    skip_assignment: bool = v("9+")
    member_id: str
    members: list[Member]  # empty for all but the leader
