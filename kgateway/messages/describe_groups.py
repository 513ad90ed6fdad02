"""
DescribeGroups: describes groups of the classic protocol and their members.

 - v1: throttle_time_ms
 - v2: over quota, the answer comes before the delay (KIP-219)
 - v3: authorized_operations, on request (KIP-430)
 - v4: group_instance_id of each member (KIP-345)
 - v5: flexible
 - v6: error_message; an unknown group is answered GROUP_ID_NOT_FOUND (KIP-1043)
"""

from kgateway.messages.operations import UNKNOWN_OPERATIONS
from kgateway.wire.schema import Message, Struct, v
from kgateway.wire.types import i16, i32


class DescribeGroupsRequest(Message, key=15, versions="0-6", flexible="5+"):
    groups: list[str]
    include_authorized_operations: bool = v("3+")


class DescribeGroupsResponse(Message, key=15, versions="0-6", flexible="5+"):
    class Group(Struct):
        class Member(Struct):
            member_id: str
            group_instance_id: str | None = v("4+", default=None)
            client_id: str
            client_host: str  # an address, in Kafka with a slash before it
            member_metadata: bytes  # empty unless the group is Stable
            member_assignment: bytes  # empty unless the group is Stable

        error_code: i16
        error_message: str | None = v("6+", default=None)
        group_id: str
        group_state: str  # as Java spells it: Stable, PreparingRebalance, Dead ...
        protocol_type: str
        protocol_data: str  # name of the assignor; empty unless Stable
        members: list[Member]
        # bit n for ACL operation n; the default: not asked for
        authorized_operations: i32 = v("3+", default=UNKNOWN_OPERATIONS)

    throttle_time_ms: i32 = v("1+")
    groups: list[Group]
