"""
DescribeGroups: the state and members of groups that use the classic protocol.

 - v3: authorized_operations, on request (KIP-430)
 - v4: group_instance_id of each member (KIP-345)
 - v6: error_message; an unknown group is GROUP_ID_NOT_FOUND, before v6 it was Dead (KIP-1043)
"""

from kgateway.api import Context, Operation, Resource, api
from kgateway.groups.classic.group import ClassicGroup
from kgateway.groups.classic.members import Member
from kgateway.groups.coordinator import GroupCoordinator
from kgateway.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from kgateway.messages.operations import UNKNOWN_OPERATIONS
from kgateway.topic_lookup import as_kafka_error
from kgateway.wire.errors import ErrorCode, KafkaError

Answer = DescribeGroupsResponse.Group
_DEAD, _STABLE = "Dead", "Stable"


@api(DescribeGroupsRequest, DescribeGroupsResponse, versions="0-6", needs=Operation.DESCRIBE.on(Resource.GROUP))
def describe_groups(request: DescribeGroupsRequest, context: Context) -> DescribeGroupsResponse:
    with_operations = request.include_authorized_operations
    return DescribeGroupsResponse(groups=[_describe(group_id, with_operations, context) for group_id in request.groups])


def _describe(group_id: str, with_operations: bool, context: Context) -> Answer:
    try:
        context.demand(Operation.DESCRIBE, Resource.GROUP, group_id)
        answer = _shown(_group(group_id, context))
    except Exception as error:
        answer = _refused(as_kafka_error(error, group_id), group_id, context)
    if with_operations and answer.error_code == ErrorCode.NONE:
        answer.authorized_operations = context.permitted(Resource.GROUP, group_id)
    return answer


def _group(group_id: str, context: Context) -> ClassicGroup:
    group = context.service(GroupCoordinator).find(group_id)
    if isinstance(group, ClassicGroup):
        return group
    raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"the members of {group_id} do not speak the classic protocol")


def _shown(group: ClassicGroup) -> Answer:
    """
    The metadata of members is shown only once the group has agreed on a protocol.
    """
    protocol = group.protocol if group.state == _STABLE else None
    return Answer(
        error_code=ErrorCode.NONE,
        group_id=group.group_id,
        group_state=group.state,
        protocol_type=group.protocol_type,
        protocol_data=protocol or "",
        members=[_member(member, protocol) for member in group.members],
    )


def _member(member: Member, protocol: str | None) -> Answer.Member:
    return Answer.Member(
        member_id=member.id,
        group_instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        member_metadata=b"" if protocol is None else member.protocols.metadata(protocol),
        member_assignment=member.assignment,
    )


def _refused(error: KafkaError, group_id: str, context: Context) -> Answer:
    is_dead = error.code is ErrorCode.GROUP_ID_NOT_FOUND
    return Answer(
        error_code=ErrorCode.NONE if is_dead and context.version < 6 else context.refuse(error, group_id),
        error_message=error.message,
        group_id=group_id,
        group_state=_DEAD if is_dead else "",
        protocol_type="",
        protocol_data="",
        members=[],
        authorized_operations=UNKNOWN_OPERATIONS,
    )
