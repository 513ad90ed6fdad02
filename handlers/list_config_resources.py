"""
ListConfigResources: the names of what can be configured, and of groups those for which something is set.

 - v0: client metrics alone; none can be set here
 - v1: resource_types, resource_type: the other kinds too (KIP-1142)
"""

from collections.abc import Callable, Iterable

from kgateway.api import Context, Operation, Resource, api
from kgateway.cluster.config_resource import ConfigKind
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
    kinds = [ConfigKind.CLIENT_METRICS] if context.version == 0 else _kinds(request)
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


def _kinds(request: ListConfigResourcesRequest) -> list[ConfigKind]:
    """
    Those that are asked for, each once; all where none is named.
    """
    for kind in request.resource_types:
        if kind not in _NAMES:
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"there are no resources of type {kind}")
    return [kind for kind in _NAMES if not request.resource_types or kind in request.resource_types]


def _groups(view: ClusterView) -> Iterable[str]:
    return [resource.name for resource in view.overrides if resource.kind is ConfigKind.GROUP]


def _nodes(view: ClusterView) -> Iterable[str]:
    return [str(node.id) for node in view.nodes]


def _topics(view: ClusterView) -> Iterable[str]:
    return view.topics


def _none(view: ClusterView) -> Iterable[str]:
    return ()


_NAMES: dict[ConfigKind, Callable[[ClusterView], Iterable[str]]] = {
    ConfigKind.GROUP: _groups,
    ConfigKind.CLIENT_METRICS: _none,
    ConfigKind.BROKER_LOGGER: _nodes,
    ConfigKind.BROKER: _nodes,
    ConfigKind.TOPIC: _topics,
}
