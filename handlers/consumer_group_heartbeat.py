"""
ConsumerGroupHeartbeat: a member joins, stays alive and leaves, and gets its partitions (KIP-848).

 - v1: subscribed_topic_regex; the member generates its own id (KIP-1082)
"""

from functools import partial

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from kgateway.api import Context, Operation, Resource, api
from kgateway.groups.consumer.group import Client, ConsumerGroup
from kgateway.groups.consumer.member import JOINING
from kgateway.groups.consumer.member_check import check_heartbeat
from kgateway.groups.coordinator import GroupCoordinator
from kgateway.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse
from kgateway.topic_lookup import as_kafka_error


@api(
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    versions="0-1",
    needs=(Operation.READ.on(Resource.GROUP), Operation.DESCRIBE.on(Resource.TOPIC)),
)
def consumer_group_heartbeat(
    request: ConsumerGroupHeartbeatRequest, context: Context
) -> ConsumerGroupHeartbeatResponse | Deferred[ConsumerGroupHeartbeatResponse]:
    context.demand(Operation.READ, Resource.GROUP, request.group_id)
    for name in request.subscribed_topic_names or ():
        context.demand(Operation.DESCRIBE, Resource.TOPIC, name)
    try:
        answer = _group(request, context).heartbeat(request, _client(context))
    except Exception as error:
        return _refused(error, request, context)
    if isinstance(answer, ConsumerGroupHeartbeatResponse):  # isinstance of Deferred takes longer
        return answer

    def failed(failure: Failure) -> ConsumerGroupHeartbeatResponse:
        return _refused(failure.value, request, context)

    return answer.addErrback(failed)


def _group(request: ConsumerGroupHeartbeatRequest, context: Context) -> ConsumerGroup:
    check_heartbeat(request, context.version, context.settings.group_consumer_assignors)
    return context.service(GroupCoordinator).consumer(request.group_id, create=request.member_epoch == JOINING)


def _client(context: Context) -> Client:
    host = f"/{context.session.host}"  # as Kafka writes it
    return Client(context.client_id or "", host, partial(context.allowed, Operation.DESCRIBE, Resource.TOPIC))


def _refused(
    error: BaseException | None, request: ConsumerGroupHeartbeatRequest, context: Context
) -> ConsumerGroupHeartbeatResponse:
    known = as_kafka_error(error, request.group_id)
    code = context.refuse(known, f"{request.group_id}: {request.member_id}")
    return ConsumerGroupHeartbeatResponse(
        throttle_time_ms=0, error_code=code, error_message=known.message, member_epoch=0, heartbeat_interval_ms=0
    )
