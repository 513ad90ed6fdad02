"""
`kgateway configs`: configs of topics, brokers and groups of any server that speaks Kafka's protocol.
"""

from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from functools import partial
from textwrap import wrap
from typing import Any, NamedTuple

from kgateway.cli.common.cluster import cluster_command
from kgateway.cli.common.config_values import config_value
from kgateway.cli.common.errors import CommandError
from kgateway.cli.common.json_document import Json
from kgateway.cli.common.output import NAME_MAX, WIDTH, Column, table
from kgateway.cli.common.parser import Command
from kgateway.cli.common.topic_names import all_topics, matching_topics
from kgateway.cli.common.values import pair, refuse_repeated
from kgateway.client.cluster import Cluster
from kgateway.client.configs import KINDS, AlterOperation, ConfigEntry, ConfigResource, alter_configs, describe_configs
from kgateway.plurals import counted
from kgateway.wire.errors import ErrorCode, KafkaError

_COLUMNS = (Column("CONFIG", 80), Column("VALUE", 200), Column("SOURCE", 20), Column("DEFAULT", 200))
_INDENT = "  "


def _add_resource(parser: ArgumentParser) -> None:
    parser.add_argument("of", metavar="KIND", choices=[*KINDS], help=f"one of {', '.join(KINDS)}")
    parser.add_argument("name", metavar="NAME", help="the name of a topic, or the id of a broker or group")


def _resource(options: Namespace, cluster: Cluster) -> ConfigResource:
    """
    The topic, broker or group that has the configs; CommandError where a topic does not exist. Groups have configs
    before they exist.
    """
    return _topic(options.name, cluster) if options.of == "topic" else ConfigResource(options.of, options.name)


def _topic(name: str, cluster: Cluster) -> ConfigResource:
    [topic] = matching_topics(all_topics(cluster), [name])
    return ConfigResource("topic", topic.name)


def _add_describe(parser: ArgumentParser) -> None:
    _add_resource(parser)
    parser.add_argument("--all", action="store_true", help="also show configs that are not set")
    parser.add_argument("--verbose", action="store_true", help="also print the server's description of each config")


def _describe(options: Namespace, cluster: Cluster) -> Iterator[str | Json]:
    resource = _resource(options, cluster)
    known = cluster.retry(partial(describe_configs, cluster, [resource], None, options.verbose)).get(resource, [])
    configs = [config for config in known if options.all or config.is_set]
    if options.json:
        yield {"kind": resource.kind, "name": resource.name, "configs": [_json(config) for config in configs]}
    elif configs:
        yield from _text(configs, options.verbose)
    else:
        yield f"{resource} has no configs of its own: --all shows {counted(len(known), 'config')}"


DESCRIBE = cluster_command(_add_describe, _describe, "kgateway configs describe topic orders --all")


def _text(configs: list[ConfigEntry], verbose: bool) -> Iterator[str]:
    rows = [(one.name, _visible(one.value, one), one.source, _visible(one.default, one)) for one in configs]
    heading, *lines = table(_COLUMNS, rows)
    yield heading
    for line, config in zip(lines, configs, strict=True):
        yield line
        if verbose:
            yield from wrap(config.documentation or "", WIDTH, initial_indent=_INDENT, subsequent_indent=_INDENT)


def _visible(value: str | None, config: ConfigEntry) -> str | None:
    return "(secret)" if config.is_sensitive else value


def _json(config: ConfigEntry) -> dict[str, Any]:
    return {
        "config": config.name,
        "value": config.value,
        "source": config.source,
        "default": config.default,
        "read_only": config.is_read_only,
        "sensitive": config.is_sensitive,
        "documentation": config.documentation,
    }


class _Way(NamedTuple):
    change: AlterOperation
    done: str
    example: str
    help: str = "a config and the values to add or remove"


def _command(way: _Way) -> Command:
    """
    A command that changes configs: all that are named or, where the server refuses one, none.
    """

    def add(parser: ArgumentParser) -> None:
        _add_resource(parser)
        if way.change is AlterOperation.UNSET:
            parser.add_argument("names", metavar="CONFIG", nargs="+", help="the name of a config")
        else:
            kind = config_value if way.change is AlterOperation.SET else pair
            parser.add_argument("values", metavar="CONFIG=VALUE", type=kind, nargs="+", help=way.help)
        parser.add_argument(
            "--dry-run", action="store_true", help="only ask the server whether it would accept the change"
        )

    def run(options: Namespace, cluster: Cluster) -> Iterator[str | Json]:
        if way.change is AlterOperation.UNSET:
            return _change(way, options, cluster, dict.fromkeys(options.names))
        return _change(way, options, cluster, {name: value for name, value, *_ in options.values})

    def check(options: Namespace) -> None:
        refuse_repeated([name for name, *_ in vars(options).get("values", [])])

    return cluster_command(add, run, way.example, check=check)


def _change(way: _Way, options: Namespace, cluster: Cluster, values: Mapping[str, str | None]) -> Iterator[str | Json]:
    resource = _resource(options, cluster)
    if way.change is AlterOperation.UNSET:
        _refuse_unknown(cluster, resource, values)
    try:
        cluster.retry(partial(alter_configs, cluster, resource, way.change, values, options.dry_run))
    except KafkaError as error:
        reason = f"{error}{_suggestion(cluster, resource, values, error)}; nothing was changed"
        raise CommandError(reason, code=error.code.name) from error
    if options.json:
        changed = {"changed": not options.dry_run, "configs": [*values]}
        yield {"kind": resource.kind, "name": resource.name} | changed
        return
    done = f"would be {way.done}" if options.dry_run else way.done
    for name, value in values.items():
        yield f"{resource}: {name if value is None else f'{name}={value}'} {done}"


SET = _command(
    _Way(
        AlterOperation.SET,
        "set",
        "kgateway configs set topic orders retention.ms=1h --dry-run",
        "a config and its value; .ms and .bytes take units, such as retention.ms=7d or segment.bytes=64MiB",
    )
)
APPEND = _command(
    _Way(AlterOperation.APPEND, "appended", "kgateway configs append topic orders cleanup.policy=compact")
)
SUBTRACT = _command(
    _Way(AlterOperation.SUBTRACT, "subtracted", "kgateway configs subtract topic orders cleanup.policy=compact")
)
UNSET = _command(_Way(AlterOperation.UNSET, "unset", "kgateway configs unset topic orders retention.ms"))


def _suggestion(cluster: Cluster, resource: ConfigResource, names: Iterable[str], error: KafkaError) -> str:
    """
    Configs that may be meant, where the server does not know a name and does not suggest one itself.
    """
    if error.code not in {ErrorCode.INVALID_CONFIG, ErrorCode.INVALID_REQUEST} or "did you mean" in str(error):
        return ""
    return _near(names, _names(cluster, resource))


def _refuse_unknown(cluster: Cluster, resource: ConfigResource, names: Iterable[str]) -> None:
    """
    Servers report success for unsetting a config that does not exist, and what was meant stays set. A server that does
    not say which configs there are is believed.
    """
    try:
        known = _names(cluster, resource)
    except KafkaError:
        return
    unknown = [name for name in names if known and name not in known]
    if unknown:
        reason = f"{resource} has no config {unknown[0]}{_near(unknown, known)}; nothing was changed"
        raise CommandError(reason, code=ErrorCode.INVALID_CONFIG.name)


def _names(cluster: Cluster, resource: ConfigResource) -> list[str]:
    return [config.name for config in describe_configs(cluster, [resource]).get(resource, [])]


def _near(names: Iterable[str], known: list[str]) -> str:
    near = [match for name in names if name not in known for match in get_close_matches(name, known, n=1)]
    return f"; did you mean {' or '.join(near)}?" if near else ""


def _add_diff(parser: ArgumentParser) -> None:
    parser.add_argument("first", metavar="TOPIC", help="the first topic")
    parser.add_argument("second", metavar="TOPIC", help="the second topic")


def _diff(options: Namespace, cluster: Cluster) -> Iterator[str | Json]:
    topics = options.first, options.second
    resources = [_topic(name, cluster) for name in topics]
    known = cluster.retry(partial(describe_configs, cluster, resources))
    first, second = ({config.name: config.value for config in known[one]} for one in resources)
    values = {name: [first.get(name), second.get(name)] for name in sorted(first | second)}
    differing = {name: pair for name, pair in values.items() if pair[0] != pair[1]}
    if options.json:
        listed = [{"config": name, "values": pair} for name, pair in differing.items()]
        yield {"topics": topics, "configs": listed}
    elif differing:
        columns = (Column("CONFIG", 80), *(Column(topic, NAME_MAX) for topic in topics))
        yield from table(columns, [(name, *pair) for name, pair in differing.items()])
    else:
        yield f"{options.first} and {options.second} have the same configs"


DIFF = cluster_command(_add_diff, _diff, "kgateway configs diff orders billing")
