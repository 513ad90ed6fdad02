"""
IncrementalAlterConfigs: sets and deletes single configs of consumer groups. What may be done is said in
`kgateway.cluster.altering`, which configs and values there are in `kgateway.cluster.group_config`.

 - v1: flexible

Each resource is changed for itself: all that is asked for of it, or nothing. Topics, brokers and what else Kafka knows
cannot be altered yet.
"""

from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

from twisted.internet.defer import Deferred, gatherResults

from kgateway.api import Context, Operation, Resource, api
from kgateway.cluster.altering import Wish, altered, check_wishes
from kgateway.cluster.config_resource import ConfigKind, ConfigResource, Overrides
from kgateway.cluster.group_config import check_group_config
from kgateway.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from kgateway.wire.errors import ErrorCode, KafkaError

Answer = IncrementalAlterConfigsResponse.Response
_Asked = IncrementalAlterConfigsRequest.Resource


class _Rules(NamedTuple):
    """
    What must be so for a kind of resource to be altered.
    """

    demand: Callable[[str, Context], None]
    check: Callable[[str, Overrides, Context], None]


@api(
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
    versions="0-1",
    needs=Operation.ALTER_CONFIGS.on(Resource.GROUP),
)
async def incremental_alter_configs(
    request: IncrementalAlterConfigsRequest, context: Context
) -> IncrementalAlterConfigsResponse:
    counted = Counter((asked.resource_type, asked.resource_name) for asked in request.resources)
    answers = [
        Deferred.fromCoroutine(
            _answer(asked, counted[asked.resource_type, asked.resource_name], request.validate_only, context)
        )
        for asked in request.resources
    ]
    return IncrementalAlterConfigsResponse(
        throttle_time_ms=0, responses=await gatherResults(answers, consumeErrors=True)
    )


async def _answer(asked: _Asked, times: int, validate_only: bool, context: Context) -> Answer:
    answer = Answer(
        error_code=ErrorCode.NONE,
        error_message=None,
        resource_type=asked.resource_type,
        resource_name=asked.resource_name,
    )
    try:
        if times > 1:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"the request names it {times} times; name it once")
        await _alter(asked, validate_only, context)
    except KafkaError as error:
        answer.error_code, answer.error_message = context.refuse(error, asked.resource_name), error.message
    return answer


async def _alter(asked: _Asked, validate_only: bool, context: Context) -> None:
    wishes = [Wish(config.name, config.config_operation, config.value) for config in asked.configs]
    check_wishes(wishes)
    name, rules = asked.resource_name, _rules(asked.resource_type)
    rules.demand(name, context)

    def change(before: Overrides) -> Overrides:
        after = altered(before, wishes)
        rules.check(name, after, context)
        return after

    resource = ConfigResource(ConfigKind(asked.resource_type), name)
    if validate_only:
        change(context.broker.view().overrides_of(resource))
    else:
        await context.broker.change_config(resource, change)


def _rules(kind: int) -> _Rules:
    if kind not in _RULES:
        reason = f"resources of type {kind} cannot be altered here; groups ({ConfigKind.GROUP}) can"
        raise KafkaError(ErrorCode.INVALID_REQUEST, reason)
    return _RULES[ConfigKind(kind)]


def _demand_group(name: str, context: Context) -> None:
    context.demand(Operation.ALTER_CONFIGS, Resource.GROUP, name)


def _check_group(name: str, overrides: Overrides, context: Context) -> None:
    if not name:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "a group has an id; there are no configs for all groups at once")
    check_group_config(overrides, context.settings)


_RULES = {ConfigKind.GROUP: _Rules(_demand_group, _check_group)}
