"""
Config alterations that another gateway makes. A request is forwarded as it is, because only the gateway that keeps the
configs knows their present values.
"""

from collections.abc import Sequence
from typing import NamedTuple

from kgateway.cluster.config_changes import AlterConfigOp
from kgateway.cluster.view import Node
from kgateway.context import Context
from kgateway.interfaces import PEER
from kgateway.messages.alter_configs import AlterConfigsRequest, AlterConfigsResponse
from kgateway.messages.incremental_alter_configs import IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse
from kgateway.wire.errors import ErrorCode, KafkaError
from kgateway.wire.schema import Message


class ResourceAlteration(NamedTuple):
    kind: int
    name: str
    ops: Sequence[AlterConfigOp]
    is_whole: bool = False  # whether all other configs of the resource are unset


def other_controller(context: Context) -> Node | None:
    view = context.broker.view()
    if view.controller_id == context.broker.node_id:
        return None
    if context.client_id == PEER:
        raise KafkaError(
            ErrorCode.NOT_CONTROLLER, f"the request is for node {view.controller_id}, and this is another node"
        )
    return view.node(view.controller_id)


async def forward(alteration: ResourceAlteration, validate_only: bool, controller: Node, context: Context) -> None:
    """
    Have another gateway make the changes; a KafkaError if it does not.
    """
    request = (_all_at_once if alteration.is_whole else _incremental)(alteration, validate_only)
    answer = await context.broker.peers.ask(controller, request, request.__spec__.versions[-1])
    assert isinstance(answer, AlterConfigsResponse | IncrementalAlterConfigsResponse)
    [outcome] = answer.responses
    if outcome.error_code:
        raise KafkaError(ErrorCode(outcome.error_code), outcome.error_message or "")


def _all_at_once(alteration: ResourceAlteration, validate_only: bool) -> Message:
    kind = AlterConfigsRequest.Resource
    configs = [kind.Config(name=op.name, value=op.value) for op in alteration.ops]
    resource = kind(resource_type=alteration.kind, resource_name=alteration.name, configs=configs)
    return AlterConfigsRequest(resources=[resource], validate_only=validate_only)


def _incremental(alteration: ResourceAlteration, validate_only: bool) -> Message:
    kind = IncrementalAlterConfigsRequest.Resource
    configs = [kind.Config(name=op.name, config_operation=op.type, value=op.value) for op in alteration.ops]
    resource = kind(resource_type=alteration.kind, resource_name=alteration.name, configs=configs)
    return IncrementalAlterConfigsRequest(resources=[resource], validate_only=validate_only)
