"""
UnregisterBroker: strikes a broker off that will not come back. Gateways are in the cluster as long as they run, and no
longer, so there is never one to strike off.
"""

from kgateway.api import Context, Operation, Resource, api
from kgateway.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse
from kgateway.wire.errors import ErrorCode, KafkaError


@api(
    UnregisterBrokerRequest,
    UnregisterBrokerResponse,
    versions="0",
    needs=Operation.ALTER.on(Resource.CLUSTER),
)
def unregister_broker(request: UnregisterBrokerRequest, context: Context) -> UnregisterBrokerResponse:
    context.demand(Operation.ALTER, Resource.CLUSTER)
    if context.broker.view().node(request.broker_id) is None:
        reason = f"Broker ID {request.broker_id} is not currently registered"
        raise KafkaError(ErrorCode.BROKER_ID_NOT_REGISTERED, reason)
    reason = f"gateway {request.broker_id} runs; it leaves the cluster by being stopped"
    raise KafkaError(ErrorCode.INVALID_REQUEST, reason)
