"""
CreateAcls: refused, because nothing would enforce the ACLs; Kafka without an authorizer does the same.

 - v1: pattern types
 - v2: flexible
 - v3: resource type user
"""

from typing import NoReturn

from kgateway.api import Context, Operation, Resource, api
from kgateway.messages.create_acls import CreateAclsRequest, CreateAclsResponse
from kgateway.wire.errors import ErrorCode, KafkaError


@api(CreateAclsRequest, CreateAclsResponse, versions="1-3", needs=Operation.ALTER.on(Resource.CLUSTER))
def create_acls(request: CreateAclsRequest, context: Context) -> NoReturn:
    context.demand(Operation.ALTER, Resource.CLUSTER)
    reason = f"No Authorizer is configured: none of {len(request.creations)} ACLs is created"
    raise KafkaError(ErrorCode.SECURITY_DISABLED, reason)
