"""
DeleteAcls: refused, because there are no ACLs; Kafka without an authorizer does the same.

 - v1: pattern types
 - v2: flexible
 - v3: resource type user
"""

from typing import NoReturn

from kgateway.api import Context, Operation, Resource, api
from kgateway.messages.delete_acls import DeleteAclsRequest, DeleteAclsResponse
from kgateway.wire.errors import ErrorCode, KafkaError


@api(DeleteAclsRequest, DeleteAclsResponse, versions="1-3", needs=Operation.ALTER.on(Resource.CLUSTER))
def delete_acls(request: DeleteAclsRequest, context: Context) -> NoReturn:
    context.demand(Operation.ALTER, Resource.CLUSTER)
    raise KafkaError(ErrorCode.SECURITY_DISABLED, "No Authorizer is configured: there are no ACLs to delete")
