"""
What AlterConfigs and IncrementalAlterConfigs share: which resources can be altered, by whom, and what must hold
afterwards.

Each resource is changed on its own: all requested changes, or none. `kgateway.cluster.config_changes` has the
operations. The configs and their values are in `kgateway.cluster.config` for topics, in
`kgateway.cluster.broker_config` for brokers, in `kgateway.cluster.group_config` for groups, and in
`kgateway.admin.log_levels` for the log.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeVar

from twisted.internet.defer import Deferred, gatherResults
from twisted.logger import Logger

from kgateway.admin.config_forwarding import ResourceAlteration as ResourceAlteration
from kgateway.admin.config_forwarding import forward, other_controller
from kgateway.admin.log_levels import ProcessLog
from kgateway.cluster.broker_config import ALL_BROKERS, BROKER_CONFIGS, check_broker_config, topic_defaults
from kgateway.cluster.config import TopicConfig
from kgateway.cluster.config_changes import OpType, altered, check_ops, replaced
from kgateway.cluster.config_resource import ConfigResource, Overrides, ResourceType, broker, changed
from kgateway.cluster.config_rows import ConfigType, brief
from kgateway.cluster.config_table import TOPIC_CONFIGS
from kgateway.cluster.group_config import check_group_config
from kgateway.cluster.names import check_name
from kgateway.cluster.topic_creation import TopicRules
from kgateway.cluster.view import NewTopic, Topic
from kgateway.context import Context
from kgateway.log_messages import CONFIG_UNMET
from kgateway.messages.alter_configs import AlterConfigsResponse
from kgateway.messages.incremental_alter_configs import IncrementalAlterConfigsResponse
from kgateway.security.permissions import Operation, Resource
from kgateway.wire.errors import ErrorCode, KafkaError

_log = Logger()

Lists = Mapping[str, str]  # the configs of a resource that are lists -> their defaults


NEEDS = tuple(Operation.ALTER_CONFIGS.on(kind) for kind in (Resource.TOPIC, Resource.CLUSTER, Resource.GROUP))
R = TypeVar("R", AlterConfigsResponse, IncrementalAlterConfigsResponse)
NO_METRICS = "client metrics are not collected: this gateway asks no clients for them"


class Outcome(NamedTuple):
    error_code: int = ErrorCode.NONE
    error_message: str | None = None


async def alter(
    alterations: Sequence[ResourceAlteration], validate_only: bool, response: type[R], context: Context
) -> R:
    """
    Make all changes, or only validate them. The responses of both APIs have the same form.
    """
    outcomes = await _outcomes(alterations, validate_only, context)
    return response(
        throttle_time_ms=0,
        responses=[
            response.Response(
                error_code=outcome.error_code,
                error_message=outcome.error_message,
                resource_type=alteration.kind,
                resource_name=alteration.name,
            )
            for alteration, outcome in zip(alterations, outcomes, strict=True)
        ],
    )


async def _outcomes(alterations: Sequence[ResourceAlteration], validate_only: bool, context: Context) -> list[Outcome]:
    counted = Counter((alteration.kind, alteration.name) for alteration in alterations)
    answers = [
        Deferred.fromCoroutine(_outcome(alteration, counted[alteration.kind, alteration.name], validate_only, context))
        for alteration in alterations
    ]
    return await gatherResults(answers, consumeErrors=True)


async def _outcome(alteration: ResourceAlteration, times: int, validate_only: bool, context: Context) -> Outcome:
    try:
        if times > 1:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
        await _alter(alteration, validate_only, context)
    except KafkaError as error:
        return Outcome(context.refuse(error, alteration.name), error.message)
    return Outcome()


async def _alter(alteration: ResourceAlteration, validate_only: bool, context: Context) -> None:
    check_ops(alteration.ops)
    if alteration.kind == ResourceType.BROKER_LOGGER and not alteration.is_whole:
        _alter_levels(alteration, validate_only, context)
        return
    rules = _rules(alteration.kind)
    context.demand(Operation.ALTER_CONFIGS, rules.resource, *rules.subject(alteration.name))
    if controller := other_controller(context):  # it may know topics that are too new to be in the view here
        await forward(alteration, validate_only, controller, context)
        return
    rules.check(alteration.name, context)
    lists, unmet = rules.lists(context), list[str]()

    def change(before: Overrides) -> Overrides:
        after = replaced(before, alteration.ops) if alteration.is_whole else altered(before, alteration.ops, lists)
        unmet[:] = rules.check_after(alteration.name, after, context)
        return after

    resource = ConfigResource(ResourceType(alteration.kind), alteration.name)
    if validate_only:
        change(context.broker.view().overrides_of(resource))
        return
    await context.broker.change_config(resource, change)
    for what in unmet:
        _log.warn(CONFIG_UNMET, resource=alteration.name, what=what)


def _alter_levels(alteration: ResourceAlteration, validate_only: bool, context: Context) -> None:
    """
    Set log levels. They are not saved: they end with the process.
    """
    context.demand(Operation.ALTER_CONFIGS, Resource.CLUSTER)
    _check_node(alteration.name, "Unexpected node id. Expected", context)
    log = context.service(ProcessLog)
    for op in alteration.ops:
        if op.type in (OpType.APPEND, OpType.SUBTRACT):
            word = OpType(op.type).name
            wrong = f"{word} operation is not allowed for the BROKER_LOGGER resource"
            raise KafkaError(ErrorCode.INVALID_REQUEST, wrong)
        log.check_name(op.name)
    wanted = altered(log.described(), alteration.ops, {})
    log.check(wanted)
    if not validate_only:
        log.set(wanted)


class _Rules(NamedTuple):
    resource: Resource
    subject: Callable[[str], tuple[str, ...]]  # the name that the authorizer is asked about; none for the cluster
    check: Callable[[str, Context], object]
    check_after: Callable[[str, Overrides, Context], list[str]]  # what is accepted and has no effect
    lists: Callable[[Context], Lists]


def _rules(kind: int) -> _Rules:
    if kind == ResourceType.CLIENT_METRICS:
        raise KafkaError(ErrorCode.INVALID_REQUEST, NO_METRICS)
    if kind not in _RULES:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown resource type {kind}")
    return _RULES[ResourceType(kind)]


def _check_node(text: str, unexpected: str, context: Context) -> None:
    """
    Refuse the id of another gateway, or of none.
    """
    own = context.broker.node_id
    try:
        node_id = int(text)
    except ValueError:
        wrong = f"Node id must be an integer, but it is: {brief(text)}"
        raise KafkaError(ErrorCode.INVALID_REQUEST, wrong) from None
    if str(node_id) != text or node_id != own:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"{unexpected} {own}, but received {brief(text)}")


def _check_topic(name: str, context: Context) -> None:
    if not name:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Default topic resources are not allowed.")
    check_name(name)
    _topic(name, context)


def _topic(name: str, context: Context) -> Topic:
    topic = context.broker.view().topics.get(name)
    if topic is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist.")
    return topic


def _check_topic_after(name: str, overrides: Overrides, context: Context) -> list[str]:
    rules, topic = TopicRules(context.broker.view(), context.settings), _topic(name, context)
    config = rules.altered(topic, overrides)
    context.broker.check_topic(NewTopic(name, len(topic.partitions), config, topic.internal))
    return rules.unmet(topic, config)


def _lists_of_topics(context: Context) -> Lists:
    defaults = topic_defaults(context.settings, context.broker.view().overrides)
    lists = [row for row in TOPIC_CONFIGS.values() if row.kind.type is ConfigType.LIST]
    return {row.name: defaults.get(row.name, row.default) for row in lists}


def _check_broker(name: str, context: Context) -> None:
    if name not in {ALL_BROKERS, *(str(node.id) for node in context.broker.view().nodes)}:
        _check_node(name, "Unexpected broker id, expected", context)


def _check_broker_after(name: str, overrides: Overrides, context: Context) -> list[str]:
    """
    Topics get defaults from brokers: the new defaults must suit what topics set themselves.
    """
    check_broker_config(overrides)
    view = context.broker.view()
    everything = changed(view.overrides, broker(name), lambda _: overrides)
    defaults = topic_defaults(context.settings, everything)
    for own, topic in {tuple(topic.config.overrides.items()): topic for topic in view.topics.values()}.items():
        try:
            TopicConfig.of(dict(own), defaults)
        except KafkaError as error:
            raise KafkaError(
                error.code, f"topic {topic.name} would not accept the new default: {error.message}"
            ) from None
    return []


def _lists_of_brokers(context: Context) -> Lists:
    return {row.name: row.default for row in BROKER_CONFIGS.values() if row.kind.type is ConfigType.LIST}


def _check_group(name: str, context: Context) -> None:
    if not name:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Default group resources are not allowed.")


def _check_group_after(name: str, overrides: Overrides, context: Context) -> list[str]:
    check_group_config(overrides, context.settings)
    return []


_RULES = {
    ResourceType.TOPIC: _Rules(
        Resource.TOPIC, lambda name: (name,), _check_topic, _check_topic_after, _lists_of_topics
    ),
    ResourceType.BROKER: _Rules(Resource.CLUSTER, lambda _: (), _check_broker, _check_broker_after, _lists_of_brokers),
    ResourceType.GROUP: _Rules(Resource.GROUP, lambda name: (name,), _check_group, _check_group_after, lambda _: {}),
}
