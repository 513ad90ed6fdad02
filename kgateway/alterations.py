"""
What the handlers share that alter configs: which resources can be altered, who may, and what must be so afterwards.

Each resource is changed for itself: all that is asked for of it, or nothing. What may be done to configs is said in
`kgateway.cluster.altering`; which configs and values there are, in `kgateway.cluster.config` for topics, in
`kgateway.cluster.broker_config` for brokers, in `kgateway.cluster.group_config` for groups, and in `kgateway.loggers`
for the log.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from twisted.internet.defer import Deferred, gatherResults
from twisted.logger import Logger

from kgateway.alterations_elsewhere import Asked as Asked
from kgateway.alterations_elsewhere import alter_elsewhere, other_controller
from kgateway.cluster.altering import Alteration, altered, check_wishes, replaced
from kgateway.cluster.broker_config import ALL_BROKERS, BROKER_CONFIGS, check_broker_config, topic_defaults
from kgateway.cluster.config import TopicConfig
from kgateway.cluster.config_resource import ConfigKind, ConfigResource, Overrides, broker, changed
from kgateway.cluster.config_rows import ConfigType, brief
from kgateway.cluster.config_table import TOPIC_CONFIGS
from kgateway.cluster.creation import Rules
from kgateway.cluster.group_config import check_group_config
from kgateway.cluster.names import check_name
from kgateway.cluster.view import NewTopic, Topic
from kgateway.context import Context
from kgateway.loggers import ProcessLog
from kgateway.security.permissions import Operation, Resource
from kgateway.wire.errors import ErrorCode, KafkaError

_log = Logger()

Lists = Mapping[str, str]  # the configs of a resource that are lists, and what holds where nothing is set


class Outcome(NamedTuple):
    """
    What is answered to that.
    """

    error_code: int = ErrorCode.NONE
    error_message: str | None = None


async def outcomes(asked: Sequence[Asked], validate_only: bool, context: Context) -> list[Outcome]:
    """
    Make all of them, or only see what would become of them.
    """
    counted = Counter((one.kind, one.name) for one in asked)
    answers = [
        Deferred.fromCoroutine(_outcome(one, counted[one.kind, one.name], validate_only, context)) for one in asked
    ]
    return await gatherResults(answers, consumeErrors=True)


async def _outcome(asked: Asked, times: int, validate_only: bool, context: Context) -> Outcome:
    try:
        if times > 1:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
        await _alter(asked, validate_only, context)
    except KafkaError as error:
        return Outcome(context.refuse(error, asked.name), error.message)
    return Outcome()


async def _alter(asked: Asked, validate_only: bool, context: Context) -> None:
    check_wishes(asked.wishes)
    if asked.kind == ConfigKind.BROKER_LOGGER and not asked.is_whole:
        _alter_levels(asked, validate_only, context)
        return
    rules = _rules(asked.kind)
    context.demand(Operation.ALTER_CONFIGS, rules.resource, *rules.subject(asked.name))
    if controller := other_controller(context):  # which may know of topics that are too new to be seen here
        await alter_elsewhere(asked, validate_only, controller, context)
        return
    rules.check(asked.name, context)
    lists, unmet = rules.lists(context), list[str]()

    def change(before: Overrides) -> Overrides:
        after = replaced(before, asked.wishes) if asked.is_whole else altered(before, asked.wishes, lists)
        unmet[:] = rules.check_after(asked.name, after, context)
        return after

    resource = ConfigResource(ConfigKind(asked.kind), asked.name)
    if validate_only:
        change(context.broker.view().overrides_of(resource))
        return
    await context.broker.change_config(resource, change)
    for what in unmet:
        _log.warn("{resource}: {what}", resource=asked.name, what=what)


def _alter_levels(asked: Asked, validate_only: bool, context: Context) -> None:
    """
    Levels of the log are no configs that are kept: they end with the process.
    """
    context.demand(Operation.ALTER_CONFIGS, Resource.CLUSTER)
    _check_node(asked.name, "Unexpected node id. Expected", context)
    log = context.service(ProcessLog)
    for wish in asked.wishes:
        if wish.alteration in (Alteration.APPEND, Alteration.SUBTRACT):
            word = Alteration(wish.alteration).name
            wrong = f"{word} operation is not allowed for the BROKER_LOGGER resource"
            raise KafkaError(ErrorCode.INVALID_REQUEST, wrong)
        log.check_name(wish.name)
    wanted = altered(log.described(), asked.wishes, {})
    log.check(wanted)
    if not validate_only:
        log.set(wanted)


class _Rules(NamedTuple):
    """
    What must be so for a kind of resource to be altered.
    """

    resource: Resource
    subject: Callable[[str], tuple[str, ...]]  # whose name the authorizer is asked about, if not the cluster's
    check: Callable[[str, Context], object]
    check_after: Callable[[str, Overrides, Context], list[str]]  # what of it will not be, though it is accepted
    lists: Callable[[Context], Lists]


def _rules(kind: int) -> _Rules:
    if kind == ConfigKind.CLIENT_METRICS:
        raise KafkaError(ErrorCode.INVALID_REQUEST, NO_METRICS)
    if kind not in _RULES:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown resource type {kind}")
    return _RULES[ConfigKind(kind)]


def _check_node(text: str, unexpected: str, context: Context) -> None:
    """
    Refuse the name of another gateway, or of none.
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
    rules, topic = Rules(context.broker.view(), context.settings), _topic(name, context)
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
    Topics follow what is set for brokers: it must fit what they have set themselves.
    """
    check_broker_config(overrides)
    view = context.broker.view()
    everything = changed(view.overrides, broker(name), lambda _: overrides)
    defaults = topic_defaults(context.settings, everything)
    for own, topic in {tuple(topic.config.overrides.items()): topic for topic in view.topics.values()}.items():
        try:
            TopicConfig.of(dict(own), defaults)
        except KafkaError as error:
            raise KafkaError(error.code, f"topic {topic.name} could not follow: {error.message}") from None
    return []


def _lists_of_brokers(context: Context) -> Lists:
    return {row.name: row.default for row in BROKER_CONFIGS.values() if row.kind.type is ConfigType.LIST}


def _check_group(name: str, context: Context) -> None:
    if not name:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Default group resources are not allowed.")


def _check_group_after(name: str, overrides: Overrides, context: Context) -> list[str]:
    check_group_config(overrides, context.settings)
    return []


NO_METRICS = "client metrics are not collected: this gateway asks no clients for them"
_RULES = {
    ConfigKind.TOPIC: _Rules(Resource.TOPIC, lambda name: (name,), _check_topic, _check_topic_after, _lists_of_topics),
    ConfigKind.BROKER: _Rules(Resource.CLUSTER, lambda _: (), _check_broker, _check_broker_after, _lists_of_brokers),
    ConfigKind.GROUP: _Rules(Resource.GROUP, lambda name: (name,), _check_group, _check_group_after, lambda _: {}),
}
