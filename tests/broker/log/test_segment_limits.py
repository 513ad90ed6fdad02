"""
When a segment is full, apart from its size.
"""

from pathlib import Path

import pytest

from kgateway.cluster.partition import Origin
from tests.broker.behaviour import START_MS, batch
from tests.broker.log.log_world import LogWorld


@pytest.mark.parametrize(("jitter_ms", "chance", "longest_ms"), [(0, 0.5, 1000), (400, 0.5, 800), (5000, 0.5, 500)])
def test_jitter(jitter_ms: int, chance: float, longest_ms: int, tmp_path: Path) -> None:
    """
    `segment.jitter.ms` subtracts a random part of itself, at most the whole, from `segment.ms`.
    """
    partition = LogWorld(tmp_path).log_partition(segment_ms=1000, segment_jitter_ms=jitter_ms)
    partition._runtime.chance = lambda: chance
    partition.set_topic(partition.topic)
    for count, timestamp in enumerate((0, longest_ms, longest_ms + 1)):
        partition.append(batch(timestamp=START_MS + timestamp), Origin.CLIENT)
        assert len(partition.segment_list.segments) == (1 if count < 2 else 2)


def test_jitter_is_drawn_for_each_segment(tmp_path: Path) -> None:
    """
    Each new segment has a time of its own.
    """
    drawn = iter([0.0, 0.0, 0.9, 0.0])
    partition = LogWorld(tmp_path).log_partition(segment_ms=1000, segment_jitter_ms=1000)
    partition._runtime.chance = lambda: next(drawn)
    partition.set_topic(partition.topic)
    at = [0, 1001, 1500, 2500, 2601]
    counts = []
    for timestamp in at:
        partition.append(batch(timestamp=START_MS + timestamp), Origin.CLIENT)
        counts.append(len(partition.segment_list.segments))
    assert counts == [1, 2, 2, 3, 4]


def test_compaction_lag_rolls(tmp_path: Path) -> None:
    """
    Records due within `max.compaction.lag.ms` are in a full segment by then; without compaction the config has no
    effect.
    """
    world = LogWorld(tmp_path)
    for name, policy, count in (("compacted", "compact", 2), ("other", "delete", 1)):
        partition = world.log_partition(name, cleanup_policy=policy, max_compaction_lag_ms=100)
        for timestamp in (0, 101):
            partition.append(batch(timestamp=START_MS + timestamp), Origin.CLIENT)
        assert len(partition.segment_list.segments) == count, name


def test_index_is_full(tmp_path: Path) -> None:
    """
    A segment ends when its index has as many entries as fit into `segment.index.bytes`.
    """
    world = LogWorld(tmp_path)
    partition = world.log_partition(index_interval_bytes=0, segment_index_bytes=16)
    for _ in range(7):
        partition.append(batch(), Origin.CLIENT)
    assert [segment.base_offset for segment in partition.segment_list.segments] == [0, 3, 6]
