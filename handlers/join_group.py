"""
JoinGroup: a member enters its group, or enters it again for a rebalance; it waits for the other members.

 - v1: rebalance_timeout_ms apart from the session timeout (KIP-62)
 - v4: a new member gets its id with MEMBER_ID_REQUIRED and joins again with it (KIP-394)
 - v5: group_instance_id, for static membership (KIP-345)
 - v7: protocol_type in the response (KIP-559)
 - v8: reason (KIP-800)
 - v9: skip_assignment, for a static leader that comes back (KIP-814)
"""

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from kgateway.api import Context, Operation, Resource, api
from kgateway.groups.classic.requests import JoinRequest, JoinResult, MemberIdRequired, Protocols
from kgateway.groups.coordinator import group_of_member, refusal_of
from kgateway.messages.join_group import JoinGroupRequest, JoinGroupResponse
from kgateway.wire.errors import ErrorCode, KafkaError


@api(JoinGroupRequest, JoinGroupResponse, versions="0-9", polls=True, needs=Operation.READ.on(Resource.GROUP))
def join_group(request: JoinGroupRequest, context: Context) -> JoinGroupResponse | Deferred[JoinGroupResponse]:
    context.demand(Operation.READ, Resource.GROUP, request.group_id)

    def failed(failure: Failure) -> JoinGroupResponse:
        return _refused(refusal_of(failure), request, context)

    try:
        joined = group_of_member(context, request.group_id, is_new=not request.member_id).join(_asked(request, context))
    except KafkaError as error:
        return _refused(error, request, context)
    return joined.addCallbacks(_answer, failed) if isinstance(joined, Deferred) else _answer(joined)


def _asked(request: JoinGroupRequest, context: Context) -> JoinRequest:
    rebalance_ms = request.session_timeout_ms if context.version == 0 else request.rebalance_timeout_ms
    return JoinRequest(
        member_id=request.member_id,
        instance_id=request.group_instance_id,
        client_id=context.client_id or "",
        client_host=f"/{context.session.host}",  # as Kafka writes it
        session_timeout_ms=request.session_timeout_ms,
        rebalance_timeout_ms=max(rebalance_ms, 0),  # Kafka accepts any value, and one below 0 ends at once
        protocol_type=request.protocol_type,
        protocols=Protocols((offered.name, offered.metadata) for offered in request.protocols),
        reason=request.reason,
        takes_member_id=context.version >= 4,
        can_skip_assignment=context.version >= 9,
    )


def _answer(joined: JoinResult) -> JoinGroupResponse:
    return JoinGroupResponse(
        error_code=ErrorCode.NONE,
        generation_id=joined.generation,
        protocol_type=joined.protocol_type,
        protocol_name=joined.protocol,
        leader=joined.leader,
        skip_assignment=joined.skip_assignment,
        member_id=joined.member_id,
        members=[
            JoinGroupResponse.Member(member_id=member_id, group_instance_id=instance_id, metadata=metadata)
            for member_id, instance_id, metadata in joined.members
        ],
    )


def _refused(error: KafkaError, request: JoinGroupRequest, context: Context) -> JoinGroupResponse:
    member_id = error.member_id if isinstance(error, MemberIdRequired) else request.member_id
    if error.code is ErrorCode.GROUP_MAX_SIZE_REACHED:
        member_id = ""  # it is not a member, whatever it was before
    code = context.refuse(error, request.group_id)
    protocol_name = "" if context.version < 7 else None
    return JoinGroupResponse(error_code=code, protocol_name=protocol_name, leader="", member_id=member_id, members=[])
