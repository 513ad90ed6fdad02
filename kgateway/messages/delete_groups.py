"""
DeleteGroups: deletes groups without members, and their offsets.

 - v1: over quota, the answer comes before the delay (KIP-219)
 - v2: flexible
"""

from kgateway.wire.schema import Message, Struct
from kgateway.wire.types import i16, i32


class DeleteGroupsRequest(Message, key=42, versions="0-2", flexible="2+"):
    groups_names: list[str]


class DeleteGroupsResponse(Message, key=42, versions="0-2", flexible="2+"):
    class Result(Struct):
        group_id: str
        error_code: i16  # NON_EMPTY_GROUP while it has members

    throttle_time_ms: i32
    results: list[Result]
