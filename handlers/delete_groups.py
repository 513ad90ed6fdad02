"""
DeleteGroups: deletes groups without members, and their offsets.

 - v2: flexible
"""

from kgateway.api import Context, Operation, Resource, api
from kgateway.groups.coordinator import GroupCoordinator
from kgateway.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from kgateway.topic_lookup import as_kafka_error
from kgateway.wire.errors import ErrorCode

Result = DeleteGroupsResponse.Result


@api(DeleteGroupsRequest, DeleteGroupsResponse, versions="0-2", needs=Operation.DELETE.on(Resource.GROUP))
async def delete_groups(request: DeleteGroupsRequest, context: Context) -> DeleteGroupsResponse:
    results = [await _delete(group_id, context) for group_id in dict.fromkeys(request.groups_names)]
    return DeleteGroupsResponse(throttle_time_ms=0, results=results)


async def _delete(group_id: str, context: Context) -> Result:
    code = ErrorCode.NONE
    try:
        context.demand(Operation.DELETE, Resource.GROUP, group_id)
        committed = context.service(GroupCoordinator).delete(group_id)
        if committed:
            await committed
    except Exception as error:
        code = context.refuse(as_kafka_error(error, group_id), group_id)
    return Result(group_id=group_id, error_code=code)
