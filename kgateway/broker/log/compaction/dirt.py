"""
Which part of a log is to be compacted, and whether that is worth it or due, by Kafka's rules.

A log is clean up to some offset, and dirty behind it. The segment that is written to stays as it is, and so do all from
the first on that has records younger than `min.compaction.lag.ms`. Of the rest a log is compacted when more of it is
dirty than `min.cleanable.dirty.ratio`, or when it has been dirty for longer than `max.compaction.lag.ms`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kgateway.broker.log.compaction.cleaning import Full
from kgateway.cluster.config import TopicConfig
from kgateway.records.batch import NO_TIMESTAMP


@dataclass(frozen=True, slots=True)
class Aged:
    """
    A full segment, with the timestamp of its first batch, -1 where it has none, and from when its newest record is.
    """

    full: Full
    first_timestamp: int
    newest_ms: int


@dataclass(frozen=True, slots=True)
class Dirt:
    """
    What can be compacted of a log: its segments from the first on.
    """

    segments: Sequence[Full]
    first_dirty: int
    is_due: bool  # whatever its ratio

    @property
    def end(self) -> int:
        """
        The offset behind it.
        """
        return self.segments[-1].end if self.segments else self.first_dirty

    @property
    def ratio(self) -> float:
        """
        Which part of it is dirty.
        """
        dirty = sum(segment.size for segment in self.segments if segment.end > self.first_dirty)
        return dirty / max(sum(segment.size for segment in self.segments), 1)

    def is_worth_it(self, config: TopicConfig) -> bool:
        """
        Whether to compact it now.
        """
        return self.end > self.first_dirty and (self.is_due or self.ratio > config.min_cleanable_dirty_ratio)


def dirt(log: Sequence[Aged], first_dirty: int, stable: int, config: TopicConfig, now_ms: int) -> Dirt:
    """
    That of a log with these full segments, where nothing behind the stable offset may be touched.
    """
    segments = list(_cleanable(log, first_dirty, stable, config, now_ms))
    began = [one.first_timestamp for one in segments if one.full.end > first_dirty]
    oldest = min((timestamp for timestamp in began if timestamp > NO_TIMESTAMP), default=now_ms)
    is_due = oldest < now_ms - config.max_compaction_lag_ms
    return Dirt([one.full for one in segments], first_dirty, is_due)


def _cleanable(log: Sequence[Aged], first_dirty: int, stable: int, config: TopicConfig, now_ms: int) -> Iterator[Aged]:
    for one in log:
        is_young = config.min_compaction_lag_ms and one.newest_ms > now_ms - config.min_compaction_lag_ms
        if one.full.end > stable or (is_young and one.full.end > first_dirty):
            return
        yield one
