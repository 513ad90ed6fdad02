"""
LeaveGroup: members leave, and the group need not wait for their sessions to expire.

 - v3: members: several at a time, also by group_instance_id (KIP-345)
 - v5: reason (KIP-800)
"""

from kgateway.api import Context, Operation, Resource, api
from kgateway.groups.classic.requests import LeavingMember
from kgateway.groups.coordinator import group_of_member
from kgateway.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from kgateway.wire.errors import ErrorCode, KafkaError

Answer = LeaveGroupResponse.Member


@api(LeaveGroupRequest, LeaveGroupResponse, versions="0-5", needs=Operation.READ.on(Resource.GROUP))
def leave_group(request: LeaveGroupRequest, context: Context) -> LeaveGroupResponse:
    context.demand(Operation.READ, Resource.GROUP, request.group_id)
    leavers = _leavers(request, context)
    outcomes = _outcomes(request.group_id, leavers, context)
    if context.version < 3:
        return LeaveGroupResponse(error_code=outcomes[0])
    return LeaveGroupResponse(
        error_code=ErrorCode.NONE,
        members=[
            Answer(member_id=leaver.member_id, group_instance_id=leaver.instance_id, error_code=code)
            for leaver, code in zip(leavers, outcomes, strict=True)
        ],
    )


def _leavers(request: LeaveGroupRequest, context: Context) -> list[LeavingMember]:
    if context.version < 3:
        return [LeavingMember(request.member_id)]
    return [LeavingMember(each.member_id, each.group_instance_id, each.reason) for each in request.members]


def _outcomes(group_id: str, leavers: list[LeavingMember], context: Context) -> list[ErrorCode]:
    """
    An error code for each member. A group that does not exist has no members.
    """
    try:
        return group_of_member(context, group_id).leave(leavers)
    except KafkaError as error:
        if error.code is not ErrorCode.UNKNOWN_MEMBER_ID:
            raise
        return [context.refuse(error, group_id)] * len(leavers)
