"""
Configs as DescribeConfigs shows them: their values, the sources of these, and what would hold without each.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from kgateway.cluster.broker_config import ALL_BROKERS, BROKER_CONFIGS, LOG_DIRS, SHOWN_ONCE_SET, at_run_time
from kgateway.cluster.config import TopicConfig
from kgateway.cluster.config_resource import NO_OVERRIDES, AllOverrides, Overrides, broker
from kgateway.cluster.config_rows import ConfigRow, ConfigType, show
from kgateway.cluster.config_table import TOPIC_CONFIGS
from kgateway.cluster.group_config import GROUP_CONFIGS
from kgateway.config.settings import BY_KAFKA_NAME, OPTIONS, Settings


class ConfigSource(IntEnum):
    TOPIC = 1
    AT_RUN_TIME = 2  # set for this broker
    BROKERS_AT_RUN_TIME = 3  # set for all brokers
    BROKER = 4  # the settings that the gateway was started with
    DEFAULT = 5
    LOGGER = 6
    GROUP = 8


class ConfigValue(NamedTuple):
    name: str
    value: str
    source: ConfigSource


@dataclass(frozen=True, slots=True)
class ConfigEntry:
    name: str
    value: str
    type: ConfigType
    meaning: str
    read_only: bool
    synonyms: tuple[ConfigValue, ...]  # in the order of precedence
    sole_source: ConfigSource = ConfigSource.DEFAULT  # the source of a value without synonyms

    @property
    def source(self) -> ConfigSource:
        return self.synonyms[0].source if self.synonyms else self.sole_source


def topic_configs(config: TopicConfig, known: "ConfigSources") -> list[ConfigEntry]:
    return [_shown(row, config.overrides, ConfigSource.TOPIC, known) for row in TOPIC_CONFIGS.values()]


def group_configs(overrides: Overrides, known: "ConfigSources") -> list[ConfigEntry]:
    return [_shown(row, overrides, ConfigSource.GROUP, known) for row in GROUP_CONFIGS.values()]


def broker_configs(known: "ConfigSources") -> list[ConfigEntry]:
    found = [(row, known.settings_of(row.name)) for row in BROKER_CONFIGS.values()]
    return [_described(row, settings) for row, settings in found if settings]


def shared_configs(everything: AllOverrides) -> list[ConfigEntry]:
    """
    The configs that were set at run time for all brokers.
    """
    texts = everything.get(broker(ALL_BROKERS), NO_OVERRIDES)
    rows = {name: BROKER_CONFIGS[name] for name in texts}
    return [
        _described(row, (ConfigValue(name, show(row.kind.parse(texts[name])), ConfigSource.BROKERS_AT_RUN_TIME),))
        for name, row in rows.items()
    ]


def logger_configs(levels: Mapping[str, str]) -> list[ConfigEntry]:
    """
    The level of each logger. Kafka gives it no type.
    """
    meaning = "The lowest level that is logged."
    return [
        ConfigEntry(name, level, ConfigType.UNKNOWN, meaning, False, (), ConfigSource.LOGGER)
        for name, level in levels.items()
    ]


@dataclass(frozen=True, slots=True)
class ConfigSources:
    """
    What decides the configs of a broker: the settings it was started with, what was set at run time, and the folder of
    its setting `broker`.
    """

    started: Settings
    everything: AllOverrides
    log_dir: str = ""

    def settings_of(self, name: str) -> tuple[ConfigValue, ...]:
        """
        The values of a config of the broker, in the order of precedence.
        """
        return tuple(self._settings_of(name))

    def _settings_of(self, name: str) -> Iterator[ConfigValue]:
        for level in at_run_time(name, self.started.node_id, self.everything):
            yield ConfigValue(
                name, level.value, ConfigSource.BROKERS_AT_RUN_TIME if level.is_for_all else ConfigSource.AT_RUN_TIME
            )
        if name == LOG_DIRS:
            is_default = self.started.broker == OPTIONS["broker"].default
            yield ConfigValue(name, self.log_dir, ConfigSource.DEFAULT if is_default else ConfigSource.BROKER)
            return
        if name in BY_KAFKA_NAME:
            option = BY_KAFKA_NAME[name]
            value = getattr(self.started, option.name)
            if value != option.default:
                yield ConfigValue(name, show(value), ConfigSource.BROKER)
        if name not in SHOWN_ONCE_SET:
            yield ConfigValue(name, BROKER_CONFIGS[name].default, ConfigSource.DEFAULT)


def _shown(row: ConfigRow, overrides: Overrides, source: ConfigSource, known: ConfigSources) -> ConfigEntry:
    """
    A config of a resource whose default comes from its broker.
    """
    settings = known.settings_of(row.synonym) if row.synonym else ()
    if row.name in overrides:
        settings = (ConfigValue(row.name, show(row.kind.parse(overrides[row.name])), source), *settings)
    return _described(row, settings)


def _described(row: ConfigRow, settings: tuple[ConfigValue, ...]) -> ConfigEntry:
    value = settings[0].value if settings else row.default
    return ConfigEntry(row.name, value, row.kind.type, row.meaning, row.is_fixed, settings)
