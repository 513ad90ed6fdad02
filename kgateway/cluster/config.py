"""
The settings of a topic.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Self

from kgateway.cluster.config_rows import unknown
from kgateway.cluster.config_table import TOPIC_CONFIGS
from kgateway.records.batch import TimestampType
from kgateway.wire.errors import ErrorCode, KafkaError

_DEFAULTS = {name: row.read(row.default) for name, row in TOPIC_CONFIGS.items()}
_NOTHING: Mapping[str, str] = MappingProxyType({})
_TIMESTAMP_TYPES = {"CreateTime": TimestampType.CREATE_TIME, "LogAppendTime": TimestampType.LOG_APPEND_TIME}


@dataclass(frozen=True, slots=True)
class TopicConfig:
    """
    What the code asks of a topic's settings, and the ones that were set, as they were set.
    """

    max_message_bytes: int = _DEFAULTS["max.message.bytes"]
    timestamp_type: TimestampType = TimestampType.CREATE_TIME
    timestamp_before_max_ms: int = _DEFAULTS["message.timestamp.before.max.ms"]
    timestamp_after_max_ms: int = _DEFAULTS["message.timestamp.after.max.ms"]
    min_insync_replicas: int = _DEFAULTS["min.insync.replicas"]
    segment_bytes: int = _DEFAULTS["segment.bytes"]
    segment_ms: int = _DEFAULTS["segment.ms"]
    index_interval_bytes: int = _DEFAULTS["index.interval.bytes"]
    flush_messages: int = _DEFAULTS["flush.messages"]
    flush_ms: int = _DEFAULTS["flush.ms"]
    acks_fsync: bool = _DEFAULTS["kgateway.acks.fsync"]
    overrides: Mapping[str, str] = field(default_factory=lambda: _NOTHING)

    @classmethod
    def of(cls, overrides: Mapping[str, str], defaults: Mapping[str, str] = _NOTHING) -> Self:
        """
        The settings of a topic for which these were set, where those of the broker hold for the rest; a KafkaError
        INVALID_CONFIG for a name that no config has, and for a value that it cannot have.
        """
        for name in overrides:
            _check_known(name)
        read = {name: row.read(_text(name, overrides, defaults)) for name, row in TOPIC_CONFIGS.items()}
        _check_lags(read["min.compaction.lag.ms"], read["max.compaction.lag.ms"])
        return cls(
            max_message_bytes=read["max.message.bytes"],
            timestamp_type=_TIMESTAMP_TYPES[read["message.timestamp.type"]],
            timestamp_before_max_ms=read["message.timestamp.before.max.ms"],
            timestamp_after_max_ms=read["message.timestamp.after.max.ms"],
            min_insync_replicas=read["min.insync.replicas"],
            segment_bytes=read["segment.bytes"],
            segment_ms=read["segment.ms"],
            index_interval_bytes=read["index.interval.bytes"],
            flush_messages=read["flush.messages"],
            flush_ms=read["flush.ms"],
            acks_fsync=read["kgateway.acks.fsync"],
            overrides=MappingProxyType(dict(overrides)),
        )


def _text(name: str, overrides: Mapping[str, str], defaults: Mapping[str, str]) -> str:
    return overrides.get(name, defaults.get(name, TOPIC_CONFIGS[name].default))


def _check_known(name: str) -> None:
    if name not in TOPIC_CONFIGS:
        raise unknown("topic", name, TOPIC_CONFIGS)


def _check_lags(least_ms: int, most_ms: int) -> None:
    if least_ms > most_ms:
        reason = f"min.compaction.lag.ms ({least_ms}) is above max.compaction.lag.ms ({most_ms})"
        raise KafkaError(ErrorCode.INVALID_CONFIG, reason)
