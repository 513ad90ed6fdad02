"""
DescribeAcls: lists the ACLs that match a filter.

 - v1: pattern types (KIP-290); over quota, the answer comes before the delay (KIP-219)
 - v2: flexible
 - v3: resource type user (KIP-373)
"""

from kgateway.wire.schema import Message, Struct, v
from kgateway.wire.types import i8, i16, i32


class DescribeAclsRequest(Message, key=29, versions="0-3", flexible="2+"):
    resource_type_filter: i8  # 1 any, 2 topic, 3 group, 4 cluster, 5 txn, 6 token, 7 user
    resource_name_filter: str | None  # null: any
    pattern_type_filter: i8 = v("1+", default=3)  # 1 any, 2 whatever covers the name, 3 literal, 4 prefixed
    principal_filter: str | None  # null: any
    host_filter: str | None
    operation: i8  # 1 any, 2 all, 3 read, 4 write, 5 create, 6 delete, ...
    permission_type: i8  # 1 any, 2 deny, 3 allow


class DescribeAclsResponse(Message, key=29, versions="0-3", flexible="2+"):
    class Resource(Struct):
        class Acl(Struct):
            principal: str
            host: str
            operation: i8
            permission_type: i8

        resource_type: i8
        resource_name: str
        pattern_type: i8 = v("1+", default=3)
        acls: list[Acl]

    throttle_time_ms: i32
    error_code: i16
    error_message: str | None
    resources: list[Resource]
