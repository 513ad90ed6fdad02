"""
SyncGroup: the leader sends the assignments, and every member waits for its own.

 - v3: group_instance_id, for static membership (KIP-345)
 - v5: protocol_type and protocol_name, checked against the group's (KIP-559)
"""

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from kgateway.api import Context, Operation, Resource, api
from kgateway.groups.classic.requests import SyncRequest, SyncResult
from kgateway.groups.coordinator import group_of_member, refusal_of
from kgateway.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from kgateway.wire.errors import ErrorCode, KafkaError


@api(SyncGroupRequest, SyncGroupResponse, versions="0-5", polls=True, needs=Operation.READ.on(Resource.GROUP))
def sync_group(request: SyncGroupRequest, context: Context) -> SyncGroupResponse | Deferred[SyncGroupResponse]:
    context.demand(Operation.READ, Resource.GROUP, request.group_id)
    if context.version >= 5 and (request.protocol_type is None or request.protocol_name is None):
        reason = (
            f"protocol_type is {request.protocol_type} and protocol_name {request.protocol_name}: both are required"
        )
        raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, reason)

    def failed(failure: Failure) -> SyncGroupResponse:
        return SyncGroupResponse(error_code=context.refuse(refusal_of(failure), request.group_id), assignment=b"")

    synced = group_of_member(context, request.group_id).sync(_asked(request))
    # Here and elsewhere, isinstance of Deferred takes longer.
    return _answer(synced) if isinstance(synced, SyncResult) else synced.addCallbacks(_answer, failed)


def _asked(request: SyncGroupRequest) -> SyncRequest:
    return SyncRequest(
        member_id=request.member_id,
        instance_id=request.group_instance_id,
        generation=request.generation_id,
        protocol_type=request.protocol_type,
        protocol=request.protocol_name,
        assignments=[(each.member_id, each.assignment) for each in request.assignments],
    )


def _answer(synced: SyncResult) -> SyncGroupResponse:
    return SyncGroupResponse(
        error_code=ErrorCode.NONE,
        protocol_type=synced.protocol_type,
        protocol_name=synced.protocol,
        assignment=synced.assignment,
    )
