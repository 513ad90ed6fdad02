"""
DescribeAcls: refused, because there are no ACLs; Kafka without an authorizer does the same.

 - v1: pattern types
 - v2: flexible
 - v3: resource type user
"""

from typing import NoReturn

from kgateway.api import Context, Operation, Resource, api
from kgateway.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse
from kgateway.wire.errors import ErrorCode, KafkaError


@api(DescribeAclsRequest, DescribeAclsResponse, versions="1-3", needs=Operation.DESCRIBE.on(Resource.CLUSTER))
def describe_acls(request: DescribeAclsRequest, context: Context) -> NoReturn:
    context.demand(Operation.DESCRIBE, Resource.CLUSTER)
    raise KafkaError(ErrorCode.SECURITY_DISABLED, "No Authorizer is configured: there are no ACLs to describe")
