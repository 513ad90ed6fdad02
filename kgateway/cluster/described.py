"""
Configs as clients are shown them: their values, where these come from, and what would hold without that.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from kgateway.cluster.config import TopicConfig
from kgateway.cluster.config_resource import Overrides
from kgateway.cluster.config_rows import ConfigType, Row, show
from kgateway.cluster.config_table import TOPIC_CONFIGS
from kgateway.cluster.group_config import GROUP_CONFIGS
from kgateway.config.settings import BY_KAFKA_NAME, Settings
from kgateway.config.sources import Option

_TYPES = {row.synonym: row.kind.type for row in TOPIC_CONFIGS.values()}
_TYPES_OF_PYTHON = {bool: ConfigType.BOOLEAN, int: ConfigType.INT, tuple: ConfigType.LIST}


class Source(IntEnum):
    """
    Where a value comes from, by Kafka's numbers.
    """

    TOPIC = 1
    BROKER = 4  # the settings that the gateway was started with
    DEFAULT = 5
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

    @property
    def source(self) -> Source:
        """
        Where the value comes from.
        """
        return self.synonyms[0].source if self.synonyms else Source.DEFAULT


def topic_defaults(settings: Settings) -> dict[str, str]:
    """
    What holds for a topic where it sets nothing and the gateway has a setting that decides it.
    """
    rows = [row for row in TOPIC_CONFIGS.values() if row.synonym in BY_KAFKA_NAME]
    return {row.name: next(_of_broker(BY_KAFKA_NAME[row.synonym], settings)).value for row in rows}


def topic_configs(config: TopicConfig, settings: Settings) -> list[Described]:
    """
    Every config of a topic.
    """
    return [_shown(row, config.overrides, Source.TOPIC, settings) for row in TOPIC_CONFIGS.values()]


def group_configs(overrides: Overrides, settings: Settings) -> list[Described]:
    """
    Every config of a consumer group.
    """
    return [_shown(row, overrides, Source.GROUP, settings) for row in GROUP_CONFIGS.values()]


def broker_configs(settings: Settings) -> list[Described]:
    """
    The settings of a gateway that Kafka's brokers have too, by Kafka's names.
    """
    described = []
    for name, option in BY_KAFKA_NAME.items():
        synonyms = tuple(_of_broker(option, settings))
        value_type = _TYPES.get(name) or _TYPES_OF_PYTHON.get(type(option.default), ConfigType.STRING)
        described.append(Described(name, synonyms[0].value, value_type, option.meaning, True, synonyms))
    return described


def _shown(row: Row, overrides: Overrides, source: Source, settings: Settings) -> Described:
    synonyms = []
    if row.name in overrides:
        value = show(row.kind.parse(overrides[row.name]))
        synonyms.append(Setting(row.name, value, source))
    if row.synonym in BY_KAFKA_NAME:
        synonyms += _of_broker(BY_KAFKA_NAME[row.synonym], settings)
    elif row.synonym:
        synonyms.append(Setting(row.synonym, row.default, Source.DEFAULT))
    value = synonyms[0].value if synonyms else row.default
    return Described(row.name, value, row.kind.type, row.meaning, False, tuple(synonyms))


def _of_broker(option: Option, settings: Settings) -> Iterator[Setting]:
    value = getattr(settings, option.name)
    if value != option.default:
        yield Setting(option.kafka, show(value), Source.BROKER)
    yield Setting(option.kafka, show(option.default), Source.DEFAULT)
