"""
Every config of Kafka's brokers that means something here, as one table, and what holds of those behind topics.

Those that topics follow where they set nothing themselves can be set at run time, for one broker or, by the name "",
for all of them. So can throttles, which throttle nothing: kafka-reassign-partitions sets them. The others are settings
that a gateway is started with, and what clients can only be told.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from kgateway.cluster.config_resource import NO_OVERRIDES, AllOverrides, Overrides, broker
from kgateway.cluster.config_rows import LONG_MAX, ConfigType, Kind, Row, long, show, unknown
from kgateway.cluster.config_table import TOPIC_CONFIGS
from kgateway.config.settings import BY_KAFKA_NAME, Settings
from kgateway.config.sources import Option
from kgateway.wire.errors import ErrorCode, KafkaError

ALL_BROKERS = ""
LOG_DIRS = "log.dirs"

_TYPES = {bool: ConfigType.BOOLEAN, int: ConfigType.INT, tuple: ConfigType.LIST}
# What Kafka has as a type where that of the setting would be another.
_KAFKAS_TYPES = {
    "connections.max.idle.ms": ConfigType.LONG,
    "group.consumer.assignors": ConfigType.LIST,
    "log.cleaner.backoff.ms": ConfigType.LONG,
    "log.cleaner.dedupe.buffer.size": ConfigType.LONG,
    "log.retention.check.interval.ms": ConfigType.LONG,
    "offsets.retention.check.interval.ms": ConfigType.LONG,
    "queued.max.request.bytes": ConfigType.LONG,
}


class Level(NamedTuple):
    """
    A value at run time, and whether it is for all brokers.
    """

    value: str
    is_for_all: bool


def _told(name: str, kind: ConfigType, default: str, meaning: str) -> Row:
    """
    A config that clients can read alone.
    """
    return Row(name, Kind(kind, lambda text: text), default, meaning, is_fixed=True)


def _setting(option: Option) -> Row:
    kind = _KAFKAS_TYPES.get(option.kafka) or _TYPES.get(type(option.default), ConfigType.STRING)
    return _told(option.kafka, kind, show(option.default), option.meaning)


_BEHIND_TOPICS = {row.synonym: replace(row, name=row.synonym) for row in TOPIC_CONFIGS.values() if row.synonym}
_SETTINGS = {name: _setting(option) for name, option in BY_KAFKA_NAME.items() if name not in _BEHIND_TOPICS}
_OTHERS = (
    _told("delete.topic.enable", ConfigType.BOOLEAN, "true", "Whether topics can be deleted."),
    _told(LOG_DIRS, ConfigType.LIST, "", "Where the partitions are."),
)


def _throttle(name: str, meaning: str) -> Row:
    without_effect = "gateways do not copy records, neither from one another nor from one place to another"
    return Row(name, long(0), str(LONG_MAX), meaning, without_effect=without_effect)


_THROTTLES = (
    _throttle("follower.replication.throttled.rate", "How many bytes a second throttled replicas receive."),
    _throttle("leader.replication.throttled.rate", "How many bytes a second are sent to throttled replicas."),
    _throttle("replica.alter.log.dirs.io.max.bytes.per.second", "How many bytes a second are moved to another disk."),
)
SHOWN_ONCE_SET = frozenset(row.name for row in _THROTTLES)  # Kafka has no default for them that it would tell

BROKER_CONFIGS = _BEHIND_TOPICS | _SETTINGS | {row.name: row for row in _OTHERS + _THROTTLES}


def check_broker_config(overrides: Overrides) -> None:
    """
    Refuse what a broker cannot have at run time: names that mean nothing here, those that are read-only, and other
    values than are allowed. Kafka's code for wrong values is INVALID_REQUEST here, unlike those of topics.
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


def at_run_time(name: str, node_id: int, everything: AllOverrides) -> Iterator[Level]:
    """
    The values that were set at run time for a config of a broker, the one that decides first.
    """
    for resource in (broker(node_id), broker(ALL_BROKERS)):
        text = everything.get(resource, NO_OVERRIDES).get(name)
        if text is not None:
            yield Level(show(BROKER_CONFIGS[name].kind.parse(text)), resource.name == ALL_BROKERS)


def defaults_at_run_time(node_id: int, everything: AllOverrides) -> dict[str, str]:
    """
    What was set at run time that holds for topics where they set nothing, by the configs of topics.
    """
    levels = {row.name: next(at_run_time(row.synonym, node_id, everything), None) for row in TOPIC_CONFIGS.values()}
    return {name: level.value for name, level in levels.items() if level}


def topic_defaults(settings: Settings, everything: AllOverrides | None = None) -> dict[str, str]:
    """
    What holds for a topic where it sets nothing, and somebody has decided it: at run time, or else at the start.
    """
    started = {
        row.name: show(getattr(settings, BY_KAFKA_NAME[row.synonym].name))
        for row in TOPIC_CONFIGS.values()
        if row.synonym in BY_KAFKA_NAME
    }
    return started | defaults_at_run_time(settings.node_id, everything or {})
