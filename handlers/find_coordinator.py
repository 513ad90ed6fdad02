"""
FindCoordinator: the coordinator of a group or a transactional id. Its state is loaded when somebody asks, and the
answer waits a little for it: not every client retries patiently on COORDINATOR_LOAD_IN_PROGRESS.

 - v0: groups only
 - v1: transactional ids too; error_message, throttle_time_ms
 - v4: several keys at a time, each with an outcome of its own
 - v6: share groups, which are not served
"""

from twisted.internet.defer import Deferred, DeferredList

from kgateway.api import Context, Operation, Resource, api
from kgateway.cluster.view import NO_NODE, Node
from kgateway.groups.coordinator import GroupCoordinator
from kgateway.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from kgateway.transactions.coordinator import TransactionCoordinator
from kgateway.wire.errors import ErrorCode, KafkaError

_KINDS = {0: Resource.GROUP, 1: Resource.TRANSACTIONAL_ID}
_NO_PORT = -1
_LOAD_S = 1  # the longest wait for the state to be loaded


@api(
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    versions="0-6",
    needs=(Operation.DESCRIBE.on(Resource.GROUP), Operation.DESCRIBE.on(Resource.TRANSACTIONAL_ID)),
)
def find_coordinator(
    request: FindCoordinatorRequest, context: Context
) -> FindCoordinatorResponse | Deferred[FindCoordinatorResponse]:
    keys = request.coordinator_keys if context.version >= 4 else [request.key]
    found = [_find(request.key_type, key, context) for key in keys]
    response = _response(found, context)
    loading = _loading(request.key_type, found, context)
    if not loading:
        return response
    return DeferredList(loading, consumeErrors=True).addTimeout(_LOAD_S, context.clock).addBoth(lambda _: response)


def _response(found: list[FindCoordinatorResponse.Coordinator], context: Context) -> FindCoordinatorResponse:
    if context.version >= 4:
        return FindCoordinatorResponse(coordinators=found)
    [one] = found
    return FindCoordinatorResponse(
        error_code=one.error_code, error_message=one.error_message, node_id=one.node_id, host=one.host, port=one.port
    )


def _loading(key_type: int, found: list[FindCoordinatorResponse.Coordinator], context: Context) -> list[Deferred[None]]:
    kind, keys = _KINDS.get(key_type), [one.key for one in found if one.error_code == ErrorCode.NONE]
    return _service(kind, context).loading(keys) if kind else []


def _service(kind: Resource, context: Context) -> GroupCoordinator | TransactionCoordinator:
    return context.service(GroupCoordinator) if kind is Resource.GROUP else context.service(TransactionCoordinator)


def _find(key_type: int, key: str, context: Context) -> FindCoordinatorResponse.Coordinator:
    try:
        node = _coordinator(key_type, key, context)
    except KafkaError as error:
        return FindCoordinatorResponse.Coordinator(
            key=key,
            node_id=NO_NODE,
            host="",
            port=_NO_PORT,
            error_code=context.refuse(error, key),
            error_message=error.message,
        )
    address = context.address(node)
    return FindCoordinatorResponse.Coordinator(
        key=key, node_id=node.id, host=address.host, port=address.port, error_code=ErrorCode.NONE, error_message=None
    )


def _coordinator(key_type: int, key: str, context: Context) -> Node:
    kind = _KINDS.get(key_type)
    if kind is None:
        wanted = "0, for a group, and 1, for a transactional id, are served"
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"key_type is {key_type}: {wanted}")
    context.demand(Operation.DESCRIBE, kind, key)
    return _service(kind, context).node_of(key) or Node(context.broker.node_id)
