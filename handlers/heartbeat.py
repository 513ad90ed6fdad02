"""
Heartbeat: a member says that it is alive, and learns whether it has to join again.

 - v3: group_instance_id, for static membership (KIP-345)
"""

from kgateway.api import Context, Operation, Resource, api
from kgateway.groups.coordinator import group_of_member
from kgateway.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kgateway.wire.errors import ErrorCode, KafkaError


@api(HeartbeatRequest, HeartbeatResponse, versions="0-4", needs=Operation.READ.on(Resource.GROUP))
def heartbeat(request: HeartbeatRequest, context: Context) -> HeartbeatResponse:
    context.demand(Operation.READ, Resource.GROUP, request.group_id)
    try:
        group = group_of_member(context, request.group_id)
        group.heartbeat(request.member_id, request.group_instance_id, request.generation_id)
    except KafkaError as error:
        # While groups are being loaded no session timer runs, so the member need not do anything.
        if error.code is not ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            return HeartbeatResponse(error_code=context.refuse(error, request.group_id))
    return HeartbeatResponse(error_code=ErrorCode.NONE)
