"""
Records of `__consumer_offsets`: groups of the classic protocol.
"""

from kgateway.wire.schema import Message, Struct, v
from kgateway.wire.types import i32, i64


class MemberMetadata(Struct):
    member_id: str
    group_instance_id: str | None = v("3+", default=None)
    client_id: str
    client_host: str
    rebalance_timeout: i32 = v("1+", default=-1)  # ms, -1: unknown
    session_timeout: i32  # ms
    subscription: bytes  # its metadata for protocol, opaque to the broker
    assignment: bytes


class GroupMetadataKey(Message, key=2, versions="0"):
    """
    Key of record type 2: one classic group.
    """

    group: str


class GroupMetadataValue(Message, key=2, versions="0-4", flexible="4+"):
    """
    Value of record type 2: a classic group after a rebalance, its members and their assignments.

     - v1: rebalance_timeout (KIP-62)
     - v2: current_state_timestamp, from which offsets age (KIP-211)
     - v3: group_instance_id (KIP-345)
     - v4: flexible (KIP-915)
    """

    protocol_type: str
    generation: i32
    protocol: str | None  # the assignor; null: no members
    leader: str | None  # a member id; null: no members
    current_state_timestamp: i64 = v("2+", default=-1)  # ms, -1: unknown
    members: list[MemberMetadata]
