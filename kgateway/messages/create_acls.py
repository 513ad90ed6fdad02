"""
CreateAcls: adds ACLs.

 - v1: pattern types (KIP-290); over quota, the answer comes before the delay (KIP-219)
 - v2: flexible
 - v3: resource type user (KIP-373)
"""

from kgateway.wire.schema import Message, Struct, v
from kgateway.wire.types import i8, i16, i32


class CreateAclsRequest(Message, key=30, versions="0-3", flexible="2+"):
    class Creation(Struct):
        resource_type: i8  # numbers as in DescribeAcls
        resource_name: str  # literal * means all
        resource_pattern_type: i8 = v("1+", default=3)  # 3 literal, 4 prefixed
        principal: str  # type and name: User:alice; User:* is everyone
        host: str  # an address, or * for all
        operation: i8
        permission_type: i8  # 2 deny, 3 allow

    creations: list[Creation]


class CreateAclsResponse(Message, key=30, versions="0-3", flexible="2+"):
    """
    The outcome of each, in the order of the request.
    """

    class Result(Struct):
        error_code: i16
        error_message: str | None

    throttle_time_ms: i32
    results: list[Result]
