"""
DeleteAcls: deletes the ACLs that match filters.

 - v1: pattern types (KIP-290); over quota, the answer comes before the delay (KIP-219)
 - v2: flexible
 - v3: resource type user (KIP-373)
"""

from kgateway.wire.schema import Message, Struct, v
from kgateway.wire.types import i8, i16, i32


class DeleteAclsRequest(Message, key=31, versions="0-3", flexible="2+"):
    """
    Deletes every ACL that matches one of the filters.
    """

    class Filter(Struct):
        resource_type_filter: i8  # this and the other numbers as in DescribeAcls
        resource_name_filter: str | None  # null: any
        pattern_type_filter: i8 = v("1+", default=3)
        principal_filter: str | None  # null: any
        host_filter: str | None  # null: any
        operation: i8
        permission_type: i8

    filters: list[Filter]


class DeleteAclsResponse(Message, key=31, versions="0-3", flexible="2+"):
    """
    The ACLs deleted, for each filter in the order of the request.
    """

    class FilterResult(Struct):
        class MatchingAcl(Struct):
            error_code: i16
            error_message: str | None
            resource_type: i8
            resource_name: str
            pattern_type: i8 = v("1+", default=3)
            principal: str
            host: str
            operation: i8
            permission_type: i8

        error_code: i16
        error_message: str | None
        matching_acls: list[MatchingAcl]

    throttle_time_ms: i32
    filter_results: list[FilterResult]
