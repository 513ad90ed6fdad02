"""
UnregisterBroker: removes a broker that will not come back. Gateways are in the cluster only while they run, so there is
never one to remove.
"""

from kgateway.api import Context, Operation, Resource, api
from kgateway.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse
from kgateway.wire.errors import ErrorCode, KafkaError


@api(UnregisterBrokerRequest, UnregisterBrokerResponse, versions="0", needs=Operation.ALTER.on(Resource.CLUSTER))
def unregister_broker(request: UnregisterBrokerRequest, context: Context) -> UnregisterBrokerResponse:
    context.demand(Operation.ALTER, Resource.CLUSTER)
    if context.broker.view().node(request.broker_id) is None:
        reason = f"Broker ID {request.broker_id} is not currently registered"
        raise KafkaError(ErrorCode.BROKER_ID_NOT_REGISTERED, reason)
    reason = f"gateway {request.broker_id} is running; stop it to remove it from the cluster"
    raise KafkaError(ErrorCode.INVALID_REQUEST, reason)
