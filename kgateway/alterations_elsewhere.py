"""
Alterations of configs that another gateway makes: what is asked for is passed on as it is, for only the one that keeps
the configs knows what they are before.
"""

from collections.abc import Sequence
from typing import NamedTuple

from kgateway.cluster.altering import Wish
from kgateway.cluster.view import Node
from kgateway.context import Context
from kgateway.interfaces import PEER
from kgateway.messages.alter_configs import AlterConfigsRequest, AlterConfigsResponse
from kgateway.messages.incremental_alter_configs import IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse
from kgateway.wire.errors import ErrorCode, KafkaError
from kgateway.wire.schema import Message


class Asked(NamedTuple):
    """
    What is asked for of one resource.
    """

    kind: int
    name: str
    wishes: Sequence[Wish]
    is_whole: bool = False  # whether these are all that is to be set


def other_controller(context: Context) -> Node | None:
    """
    The gateway that keeps the configs, if that is another one.
    """
    view = context.broker.view()
    if view.controller_id == context.broker.node_id:
        return None
    if context.client_id == PEER:
        raise KafkaError(
            ErrorCode.NOT_CONTROLLER, f"node {view.controller_id} was to be asked, and this is another one"
        )
    return view.node(view.controller_id)


async def alter_elsewhere(asked: Asked, validate_only: bool, controller: Node, context: Context) -> None:
    """
    Have it done; a KafkaError says why not.
    """
    request = (_whole if asked.is_whole else _single)(asked, validate_only)
    answer = await context.broker.peers.ask(controller, request, request.__spec__.versions[-1])
    assert isinstance(answer, AlterConfigsResponse | IncrementalAlterConfigsResponse)
    [told] = answer.responses
    if told.error_code:
        raise KafkaError(ErrorCode(told.error_code), told.error_message or "")


def _whole(asked: Asked, validate_only: bool) -> Message:
    kind = AlterConfigsRequest.Resource
    configs = [kind.Config(name=wish.name, value=wish.value) for wish in asked.wishes]
    resource = kind(resource_type=asked.kind, resource_name=asked.name, configs=configs)
    return AlterConfigsRequest(resources=[resource], validate_only=validate_only)


def _single(asked: Asked, validate_only: bool) -> Message:
    kind = IncrementalAlterConfigsRequest.Resource
    configs = [kind.Config(name=wish.name, config_operation=wish.alteration, value=wish.value) for wish in asked.wishes]
    resource = kind(resource_type=asked.kind, resource_name=asked.name, configs=configs)
    return IncrementalAlterConfigsRequest(resources=[resource], validate_only=validate_only)
