"""
ListGroups: lists the groups that this broker coordinates.

 - v1: throttle_time_ms
 - v2: over quota, the answer comes before the delay (KIP-219)
 - v3: flexible
 - v4: states_filter and group_state (KIP-518)
 - v5: types_filter and group_type (KIP-848)
"""

from kgateway.wire.schema import Message, Struct, v
from kgateway.wire.types import i16, i32


class ListGroupsRequest(Message, key=16, versions="0-5", flexible="3+"):
    states_filter: list[str] = v("4+")  # empty: any state
    types_filter: list[str] = v("5+")  # empty: any type


class ListGroupsResponse(Message, key=16, versions="0-5", flexible="3+"):
    class Group(Struct):
        group_id: str
        protocol_type: str  # empty: a group that only stores offsets
        group_state: str = v("4+")
        group_type: str = v("5+")  # classic, consumer, share or streams

    throttle_time_ms: i32 = v("1+")
    error_code: i16
    groups: list[Group]
