"""
Heartbeat: tells the coordinator that a member is alive.

 - v1: throttle_time_ms
 - v2: over quota, the answer comes before the delay (KIP-219)
 - v3: group_instance_id, for static membership (KIP-345)
 - v4: flexible
"""

from kgateway.wire.schema import Message, v
from kgateway.wire.types import i16, i32


class HeartbeatRequest(Message, key=12, versions="0-4", flexible="4+"):
    group_id: str
    generation_id: i32
    member_id: str
    group_instance_id: str | None = v("3+", default=None)  # null from a member that is not static


class HeartbeatResponse(Message, key=12, versions="0-4", flexible="4+"):
    throttle_time_ms: i32 = v("1+")
    error_code: i16  # REBALANCE_IN_PROGRESS: join again
