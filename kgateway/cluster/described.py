"""
Configs as clients are shown them: their values, where these come from, and what would hold without that.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple

from kgateway.cluster.broker_config import ALL_BROKERS, BROKER_CONFIGS, SHOWN_ONCE_SET, at_run_time
from kgateway.cluster.config import TopicConfig
from kgateway.cluster.config_resource import NO_OVERRIDES, AllOverrides, Overrides, broker
from kgateway.cluster.config_rows import ConfigType, Row, show
from kgateway.cluster.config_table import TOPIC_CONFIGS
from kgateway.cluster.group_config import GROUP_CONFIGS
from kgateway.config.settings import BY_KAFKA_NAME, Settings


class Source(IntEnum):
    """
    Where a value comes from, by Kafka's numbers.
    """

    TOPIC = 1
    AT_RUN_TIME = 2  # set for this broker
    BROKERS_AT_RUN_TIME = 3  # set for all brokers
    BROKER = 4  # the settings that the gateway was started with
    DEFAULT = 5
    LOGGER = 6
    GROUP = 8


class Setting(NamedTuple):
    """
    A value that a config has, or would have were the ones before it not there.
    """

    name: str
    value: str
    source: Source


@dataclass(frozen=True, slots=True)
class Described:
    """
    A config as it is shown.
    """

    name: str
    value: str
    type: ConfigType
    meaning: str
    read_only: bool
    synonyms: tuple[Setting, ...]  # what decides the value comes first
    alone: Source = Source.DEFAULT  # where the value comes from if it has no synonyms

    @property
    def source(self) -> Source:
        """
        Where the value comes from.
        """
        return self.synonyms[0].source if self.synonyms else self.alone


def topic_configs(config: TopicConfig, known: "Known") -> list[Described]:
    """
    Every config of a topic.
    """
    return [_shown(row, config.overrides, Source.TOPIC, known) for row in TOPIC_CONFIGS.values()]


def group_configs(overrides: Overrides, known: "Known") -> list[Described]:
    """
    Every config of a consumer group.
    """
    return [_shown(row, overrides, Source.GROUP, known) for row in GROUP_CONFIGS.values()]


def broker_configs(known: "Known") -> list[Described]:
    """
    Every config of this broker that has a value.
    """
    found = [(row, known.settings_of(row.name)) for row in BROKER_CONFIGS.values()]
    return [_described(row, settings) for row, settings in found if settings]


def shared_configs(everything: AllOverrides) -> list[Described]:
    """
    What was set at run time for all brokers.
    """
    texts = everything.get(broker(ALL_BROKERS), NO_OVERRIDES)
    rows = {name: BROKER_CONFIGS[name] for name in texts}
    return [
        _described(row, (Setting(name, show(row.kind.parse(texts[name])), Source.BROKERS_AT_RUN_TIME),))
        for name, row in rows.items()
    ]


def logger_configs(levels: Mapping[str, str]) -> list[Described]:
    """
    The level of each logger, of which Kafka tells no type.
    """
    meaning = "What is logged: this and worse."
    return [
        Described(name, level, ConfigType.UNKNOWN, meaning, False, (), Source.LOGGER) for name, level in levels.items()
    ]


@dataclass(frozen=True, slots=True)
class Known:
    """
    What decides the configs of a broker: the settings it was started with, what was set for resources at run time, and
    what it knows of itself.
    """

    started: Settings
    everything: AllOverrides
    itself: Mapping[str, str] = field(default_factory=dict)

    def settings_of(self, name: str) -> tuple[Setting, ...]:
        """
        The values of a config of the broker, the one that holds first.
        """
        return tuple(self._settings_of(name))

    def _settings_of(self, name: str) -> Iterator[Setting]:
        for level in at_run_time(name, self.started.node_id, self.everything):
            yield Setting(name, level.value, Source.BROKERS_AT_RUN_TIME if level.is_for_all else Source.AT_RUN_TIME)
        if name in self.itself:
            yield Setting(name, self.itself[name], Source.BROKER)
            return
        if name in BY_KAFKA_NAME:
            option = BY_KAFKA_NAME[name]
            value = getattr(self.started, option.name)
            if value != option.default:
                yield Setting(name, show(value), Source.BROKER)
        if name not in SHOWN_ONCE_SET:
            yield Setting(name, BROKER_CONFIGS[name].default, Source.DEFAULT)


def _shown(row: Row, overrides: Overrides, source: Source, known: Known) -> Described:
    """
    A config of a resource that follows its broker where it sets nothing.
    """
    settings = known.settings_of(row.synonym) if row.synonym else ()
    if row.name in overrides:
        settings = (Setting(row.name, show(row.kind.parse(overrides[row.name])), source), *settings)
    return _described(row, settings)


def _described(row: Row, settings: tuple[Setting, ...]) -> Described:
    value = settings[0].value if settings else row.default
    return Described(row.name, value, row.kind.type, row.meaning, row.is_fixed, settings)
