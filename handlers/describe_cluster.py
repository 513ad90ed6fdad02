"""
DescribeCluster: the brokers, the controller and the id of the cluster.

 - v1: endpoint_type; gateways are brokers, without controllers
 - v2: include_fenced_brokers; a gateway is in the cluster or not, so there are none
"""

from kgateway.api import Context, Operation, Resource, api
from kgateway.cluster.view import ListenerView
from kgateway.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from kgateway.messages.operations import UNKNOWN_OPERATIONS
from kgateway.topic_lookup import endpoints
from kgateway.wire.errors import ErrorCode, KafkaError

_BROKERS, _CONTROLLERS = 1, 2


@api(DescribeClusterRequest, DescribeClusterResponse, versions="0-2", needs=Operation.DESCRIBE.on(Resource.CLUSTER))
def describe_cluster(request: DescribeClusterRequest, context: Context) -> DescribeClusterResponse:
    _check_endpoint(request.endpoint_type)
    view = context.broker.view()
    listener_view = ListenerView.of(view, context.broker.node_id, context.session.listener)
    return DescribeClusterResponse(
        throttle_time_ms=0,
        error_code=ErrorCode.NONE,
        cluster_id=view.cluster_id,
        controller_id=listener_view.controller_id,
        brokers=[
            DescribeClusterResponse.Broker(broker_id=node.id, host=address.host, port=address.port, rack=node.rack)
            for node, address in endpoints(context, listener_view.nodes)
        ],
        cluster_authorized_operations=_operations(request, context),
    )


def _check_endpoint(endpoint_type: int) -> None:
    if endpoint_type == _CONTROLLERS:
        raise KafkaError(ErrorCode.MISMATCHED_ENDPOINT_TYPE, "this is a broker, and the request is for a controller")
    if endpoint_type != _BROKERS:
        raise KafkaError(ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, f"Unsupported endpoint type {endpoint_type}")


def _operations(request: DescribeClusterRequest, context: Context) -> int:
    if not request.include_cluster_authorized_operations:
        return UNKNOWN_OPERATIONS
    return context.permitted(Resource.CLUSTER) if context.allowed(Operation.DESCRIBE, Resource.CLUSTER) else 0
