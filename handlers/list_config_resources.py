"""
ListConfigResources: the resources that can be configured; of groups, those with configs.

 - v0: client metrics alone; none can be set here
 - v1: resource_types, resource_type: the other types too (KIP-1142)
"""

from collections.abc import Callable, Iterable

from kgateway.api import Context, Operation, Resource, api
from kgateway.cluster.config_resource import ResourceType
from kgateway.cluster.view import ClusterView
from kgateway.messages.list_config_resources import ListConfigResourcesRequest, ListConfigResourcesResponse
from kgateway.wire.errors import ErrorCode, KafkaError


@api(
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
    versions="0-1",
    needs=Operation.DESCRIBE_CONFIGS.on(Resource.CLUSTER),
)
def list_config_resources(request: ListConfigResourcesRequest, context: Context) -> ListConfigResourcesResponse:
    context.demand(Operation.DESCRIBE_CONFIGS, Resource.CLUSTER)
    kinds = [ResourceType.CLIENT_METRICS] if context.version == 0 else _kinds(request)
    view = context.broker.view()
    return ListConfigResourcesResponse(
        throttle_time_ms=0,
        error_code=ErrorCode.NONE,
        config_resources=[
            ListConfigResourcesResponse.ConfigResource(resource_name=name, resource_type=kind)
            for kind in kinds
            for name in _NAMES[kind](view)
        ],
    )


def _kinds(request: ListConfigResourcesRequest) -> list[ResourceType]:
    """
    The requested types, each once; all types if none is named.
    """
    for kind in request.resource_types:
        if kind not in _NAMES:
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"there are no resources of type {kind}")
    return [kind for kind in _NAMES if not request.resource_types or kind in request.resource_types]


def _groups(view: ClusterView) -> Iterable[str]:
    return [resource.name for resource in view.overrides if resource.kind is ResourceType.GROUP]


def _nodes(view: ClusterView) -> Iterable[str]:
    return [str(node.id) for node in view.nodes]


def _topics(view: ClusterView) -> Iterable[str]:
    return view.topics


def _none(view: ClusterView) -> Iterable[str]:
    return ()


_NAMES: dict[ResourceType, Callable[[ClusterView], Iterable[str]]] = {
    ResourceType.GROUP: _groups,
    ResourceType.CLIENT_METRICS: _none,
    ResourceType.BROKER_LOGGER: _nodes,
    ResourceType.BROKER: _nodes,
    ResourceType.TOPIC: _topics,
}
