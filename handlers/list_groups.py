"""
ListGroups: the groups that this gateway coordinates.

 - v4: states_filter, and the state of each
 - v5: types_filter, and the type of each

A client that may describe the cluster sees all groups, others those that they may describe.
"""

from kgateway.api import Context, Operation, Resource, api
from kgateway.groups.coordinator import GroupCoordinator
from kgateway.groups.group import Group
from kgateway.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from kgateway.wire.errors import ErrorCode

Answer = ListGroupsResponse.Group


@api(
    ListGroupsRequest,
    ListGroupsResponse,
    versions="0-5",
    needs=(Operation.DESCRIBE.on(Resource.CLUSTER), Operation.DESCRIBE.on(Resource.GROUP)),
)
async def list_groups(request: ListGroupsRequest, context: Context) -> ListGroupsResponse:
    groups = await context.service(GroupCoordinator).all()
    states, types = _lowered(request.states_filter), _lowered(request.types_filter)
    sees_all = context.allowed(Operation.DESCRIBE, Resource.CLUSTER)
    answers = [
        _answer(group)
        for group in groups
        if (not states or group.state.lower() in states)
        and (not types or group.type.value in types)
        and (sees_all or context.allowed(Operation.DESCRIBE, Resource.GROUP, group.group_id))
    ]
    return ListGroupsResponse(throttle_time_ms=0, error_code=ErrorCode.NONE, groups=answers)


def _lowered(names: list[str]) -> set[str]:
    return {name.strip().lower() for name in names}


def _answer(group: Group) -> Answer:
    return Answer(
        group_id=group.group_id, protocol_type=group.protocol_type, group_state=group.state, group_type=group.type.value
    )
