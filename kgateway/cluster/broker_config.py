"""
The configs of Kafka's brokers that mean something here, as one table, and the defaults that they give to topics.

The defaults of topics can be set at run time, for one broker or, under the name "", for all of them. So can throttles,
which have no effect but are set by kafka-reassign-partitions. The other configs are settings that a gateway is started
with, or facts that clients can only read.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from kgateway.cluster.config_resource import NO_OVERRIDES, AllOverrides, Overrides, broker
from kgateway.cluster.config_rows import LONG_MAX, ConfigRow, ConfigType, ValueKind, long, show, unknown
from kgateway.cluster.config_table import TOPIC_CONFIGS
from kgateway.config.settings import BY_KAFKA_NAME, Settings
from kgateway.config.sources import Option
from kgateway.wire.errors import ErrorCode, KafkaError

ALL_BROKERS = ""
LOG_DIRS = "log.dirs"

_TYPES = {bool: ConfigType.BOOLEAN, int: ConfigType.INT, tuple: ConfigType.LIST}
# Kafka's types, if they differ from those of the settings.
_KAFKA_TYPES = {
    "connections.max.idle.ms": ConfigType.LONG,
    "group.consumer.assignors": ConfigType.LIST,
    "log.cleaner.backoff.ms": ConfigType.LONG,
    "log.cleaner.dedupe.buffer.size": ConfigType.LONG,
    "log.retention.check.interval.ms": ConfigType.LONG,
    "offsets.retention.check.interval.ms": ConfigType.LONG,
    "queued.max.request.bytes": ConfigType.LONG,
}


class RunTimeValue(NamedTuple):
    """
    A value that was set at run time, for this broker or for all.
    """

    value: str
    is_for_all: bool


def _read_only(name: str, kind: ConfigType, default: str, meaning: str) -> ConfigRow:
    return ConfigRow(name, ValueKind(kind, lambda text: text), default, meaning, is_fixed=True)


def _setting(option: Option) -> ConfigRow:
    kind = _KAFKA_TYPES.get(option.kafka) or _TYPES.get(type(option.default), ConfigType.STRING)
    return _read_only(option.kafka, kind, show(option.default), option.meaning)


_TOPIC_DEFAULTS = {row.synonym: replace(row, name=row.synonym) for row in TOPIC_CONFIGS.values() if row.synonym}
_SETTINGS = {name: _setting(option) for name, option in BY_KAFKA_NAME.items() if name not in _TOPIC_DEFAULTS}
_OTHERS = (
    _read_only("delete.topic.enable", ConfigType.BOOLEAN, "true", "Whether topics can be deleted."),
    _read_only(LOG_DIRS, ConfigType.LIST, "", "The folder of the partitions."),
)


def _throttle(name: str, meaning: str) -> ConfigRow:
    without_effect = "gateways do not copy records, neither from one another nor from one disk to another"
    return ConfigRow(name, long(0), str(LONG_MAX), meaning, without_effect=without_effect)


_THROTTLES = (
    _throttle("follower.replication.throttled.rate", "How many bytes a second throttled replicas receive."),
    _throttle("leader.replication.throttled.rate", "How many bytes a second are sent to throttled replicas."),
    _throttle("replica.alter.log.dirs.io.max.bytes.per.second", "How many bytes a second are moved to another disk."),
)
SHOWN_ONCE_SET = frozenset(row.name for row in _THROTTLES)  # Kafka shows no default for them

BROKER_CONFIGS = _TOPIC_DEFAULTS | _SETTINGS | {row.name: row for row in _OTHERS + _THROTTLES}


def check_broker_config(overrides: Overrides) -> None:
    """
    Refuse what a broker cannot have at run time: unknown names, read-only configs, and values that are not allowed.
    Kafka's code for a wrong value of a broker is INVALID_REQUEST, unlike that of topics.
    """
    fixed = [name for name in overrides if name in BROKER_CONFIGS and BROKER_CONFIGS[name].is_fixed]
    if fixed:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Cannot update these configs dynamically: [{', '.join(fixed)}]")
    for name in overrides:
        if name not in BROKER_CONFIGS:
            raise unknown("broker", name, BROKER_CONFIGS)
    for name, text in overrides.items():
        try:
            BROKER_CONFIGS[name].read(text)
        except KafkaError as error:
            raise KafkaError(ErrorCode.INVALID_REQUEST, error.message) from None


def at_run_time(name: str, node_id: int, everything: AllOverrides) -> Iterator[RunTimeValue]:
    """
    The values that were set at run time for a config of a broker, in the order of precedence.
    """
    for resource in (broker(node_id), broker(ALL_BROKERS)):
        text = everything.get(resource, NO_OVERRIDES).get(name)
        if text is not None:
            yield RunTimeValue(show(BROKER_CONFIGS[name].kind.parse(text)), resource.name == ALL_BROKERS)


def defaults_at_run_time(node_id: int, everything: AllOverrides) -> dict[str, str]:
    """
    The defaults of topics that were set at run time, by the name of the topic config.
    """
    levels = {row.name: next(at_run_time(row.synonym, node_id, everything), None) for row in TOPIC_CONFIGS.values()}
    return {name: level.value for name, level in levels.items() if level}


def topic_defaults(settings: Settings, everything: AllOverrides | None = None) -> dict[str, str]:
    """
    The defaults of topics that somebody has set, at run time or else at the start.
    """
    started = {
        row.name: show(getattr(settings, BY_KAFKA_NAME[row.synonym].name))
        for row in TOPIC_CONFIGS.values()
        if row.synonym in BY_KAFKA_NAME
    }
    return started | defaults_at_run_time(settings.node_id, everything or {})
