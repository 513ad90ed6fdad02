"""
The settings of a topic.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Self

from kgateway.cluster.config_rows import LONG_MAX, unknown
from kgateway.cluster.config_table import FIXED_CONFIGS, TOPIC_CONFIGS
from kgateway.records.batch import TimestampType
from kgateway.records.compression import Codec
from kgateway.wire.errors import ErrorCode, KafkaError

_DEFAULTS = {name: row.read(row.default) for name, row in TOPIC_CONFIGS.items()}
DELETE, COMPACT = "delete", "compact"  # of a cleanup.policy
_NOTHING: Mapping[str, str] = MappingProxyType({})
_CODECS = {name.lower(): codec for name, codec in Codec.__members__.items()} | {"uncompressed": Codec.NONE}
_TIMESTAMP_TYPES = {"CreateTime": TimestampType.CREATE_TIME, "LogAppendTime": TimestampType.LOG_APPEND_TIME}


@dataclass(frozen=True, slots=True)
class TopicConfig:
    """
    The settings of a topic as the code uses them, and the overrides as they were set.
    """

    max_message_bytes: int = _DEFAULTS["max.message.bytes"]
    timestamp_type: TimestampType = TimestampType.CREATE_TIME
    timestamp_before_max_ms: int = _DEFAULTS["message.timestamp.before.max.ms"]
    timestamp_after_max_ms: int = _DEFAULTS["message.timestamp.after.max.ms"]
    min_insync_replicas: int = _DEFAULTS["min.insync.replicas"]
    segment_bytes: int = _DEFAULTS["segment.bytes"]
    segment_ms: int = _DEFAULTS["segment.ms"]
    segment_jitter_ms: int = _DEFAULTS["segment.jitter.ms"]
    segment_index_bytes: int = _DEFAULTS["segment.index.bytes"]
    index_interval_bytes: int = _DEFAULTS["index.interval.bytes"]
    flush_messages: int = _DEFAULTS["flush.messages"]
    flush_ms: int = _DEFAULTS["flush.ms"]
    cleanup_policy: tuple[str, ...] = _DEFAULTS["cleanup.policy"]
    retention_ms: int = _DEFAULTS["retention.ms"]  # below 0: without limit
    retention_bytes: int = _DEFAULTS["retention.bytes"]  # below 0: without limit
    file_delete_delay_ms: int = _DEFAULTS["file.delete.delay.ms"]
    delete_retention_ms: int = _DEFAULTS["delete.retention.ms"]
    min_compaction_lag_ms: int = _DEFAULTS["min.compaction.lag.ms"]
    max_compaction_lag_ms: int = _DEFAULTS["max.compaction.lag.ms"]
    min_cleanable_dirty_ratio: float = _DEFAULTS["min.cleanable.dirty.ratio"]
    codec: Codec | None = None  # of the log; `None`: the codec that the producer used
    compression_level: int | None = None
    acks_fsync: bool = _DEFAULTS["kgateway.acks.fsync"]
    seaweedmq_acks: str = _DEFAULTS["seaweedmq.acks"]
    seaweedmq_format: str = _DEFAULTS["seaweedmq.format"]
    overrides: Mapping[str, str] = field(default_factory=lambda: _NOTHING)
    # What follows from these, and every batch asks for.
    compacts: bool = field(init=False)
    stamps: bool = field(init=False)  # whether the broker sets the timestamps (LogAppendTime)
    validates_records: bool = field(init=False)  # whether each record is checked, for its key or for its age

    def __post_init__(self) -> None:
        compacts = COMPACT in self.cleanup_policy
        object.__setattr__(self, "compacts", compacts)
        object.__setattr__(self, "stamps", self.timestamp_type is TimestampType.LOG_APPEND_TIME)
        object.__setattr__(self, "validates_records", compacts or self.timestamp_before_max_ms != LONG_MAX)

    @property
    def deletes(self) -> bool:
        """
        Whether records may be deleted by age, by size, or by DeleteRecords.
        """
        return DELETE in self.cleanup_policy

    @property
    def has_compaction_lag(self) -> bool:
        """
        Whether compaction depends on the age of records.
        """
        return self.min_compaction_lag_ms > 0 or self.max_compaction_lag_ms < LONG_MAX

    @property
    def roll_ms(self) -> int:
        """
        The longest time that a segment is written to: a segment must be full before it can be compacted.
        """
        return min(self.segment_ms, self.max_compaction_lag_ms) if self.compacts else self.segment_ms

    @classmethod
    def of(cls, overrides: Mapping[str, str], defaults: Mapping[str, str] = _NOTHING) -> Self:
        """
        The settings of a topic with these overrides, on top of the broker's defaults. INVALID_CONFIG for unknown names
        and for values that are not allowed.
        """
        for name in overrides:
            _check_known(name)
        read = {name: row.read(_text(name, overrides, defaults)) for name, row in TOPIC_CONFIGS.items()}
        _check_lags(read["min.compaction.lag.ms"], read["max.compaction.lag.ms"])
        codec = _CODECS.get(read["compression.type"])
        return cls(
            max_message_bytes=read["max.message.bytes"],
            timestamp_type=_TIMESTAMP_TYPES[read["message.timestamp.type"]],
            timestamp_before_max_ms=read["message.timestamp.before.max.ms"],
            timestamp_after_max_ms=read["message.timestamp.after.max.ms"],
            min_insync_replicas=read["min.insync.replicas"],
            segment_bytes=read["segment.bytes"],
            segment_ms=read["segment.ms"],
            segment_jitter_ms=read["segment.jitter.ms"],
            segment_index_bytes=read["segment.index.bytes"],
            index_interval_bytes=read["index.interval.bytes"],
            flush_messages=read["flush.messages"],
            flush_ms=read["flush.ms"],
            cleanup_policy=read["cleanup.policy"],
            retention_ms=read["retention.ms"],
            retention_bytes=read["retention.bytes"],
            file_delete_delay_ms=read["file.delete.delay.ms"],
            delete_retention_ms=read["delete.retention.ms"],
            min_compaction_lag_ms=read["min.compaction.lag.ms"],
            max_compaction_lag_ms=read["max.compaction.lag.ms"],
            min_cleanable_dirty_ratio=read["min.cleanable.dirty.ratio"],
            codec=codec,
            compression_level=read.get(f"compression.{codec.name.lower()}.level") if codec else None,
            acks_fsync=read["kgateway.acks.fsync"],
            seaweedmq_acks=read["seaweedmq.acks"],
            seaweedmq_format=read["seaweedmq.format"],
            overrides=MappingProxyType(dict(overrides)),
        )

    def altered(self, overrides: Mapping[str, str], defaults: Mapping[str, str] = _NOTHING) -> "TopicConfig":
        """
        The settings of the topic with other overrides, or the same object if they are the same. INVALID_CONFIG also if
        a fixed config changes.
        """
        if overrides == self.overrides:
            return self
        for name in FIXED_CONFIGS:
            if overrides.get(name) != self.overrides.get(name):
                reason = f"{name} is set when a topic is created, and cannot be changed"
                raise KafkaError(ErrorCode.INVALID_CONFIG, reason)
        return self.of(overrides, defaults)

    def following(self, defaults: Mapping[str, str]) -> "TopicConfig":
        """
        The settings of the topic under other defaults, or the same object if nothing changes.
        """
        config = self.of(self.overrides, defaults)
        return self if config == self else config


def _text(name: str, overrides: Mapping[str, str], defaults: Mapping[str, str]) -> str:
    return overrides.get(name, defaults.get(name, TOPIC_CONFIGS[name].default))


def _check_known(name: str) -> None:
    if name not in TOPIC_CONFIGS:
        raise unknown("topic", name, TOPIC_CONFIGS)


def _check_lags(least_ms: int, most_ms: int) -> None:
    if least_ms > most_ms:
        reason = f"conflict topic config setting min.compaction.lag.ms ({least_ms}) > max.compaction.lag.ms ({most_ms})"
        raise KafkaError(ErrorCode.INVALID_CONFIG, reason)
