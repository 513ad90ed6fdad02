"""
Which part of a log is dirty, and whether it is worth a round or due.
"""

from typing import Any

import pytest

from kgateway.broker.log.compaction.compaction_round import FullSegment
from kgateway.broker.log.compaction.partition_compaction import AgedSegment, DirtyPart, dirt
from kgateway.cluster.config import TopicConfig
from kgateway.cluster.config_rows import LONG_MAX

NOW_MS = 1_000_000
HOUR_MS = 3_600_000
ANYTHING = 1 << 40


def log(*rows: tuple[int, int], size: int = 100) -> list[AgedSegment]:
    """
    Segments of ten offsets with the timestamps of their first batches and of their newest records.
    """
    return [AgedSegment(FullSegment(n * 10, n * 10 + 10, size), *row) for n, row in enumerate(rows)]


def found(segments: list[AgedSegment], first_dirty: int = 0, stable: int = ANYTHING, **config: Any) -> DirtyPart:
    return dirt(segments, first_dirty, stable, TopicConfig(**config), NOW_MS)


OLD = (0, 0)


def test_all_full_segments() -> None:
    """
    Without a lag all full segments can be compacted, whatever their timestamps.
    """
    here = found(log(OLD, (NOW_MS, 2 * NOW_MS), (-1, -1)))
    assert [segment.base for segment in here.segments] == [0, 10, 20]
    assert (here.end, here.first_dirty, here.is_due) == (30, 0, False)


@pytest.mark.parametrize(("first_dirty", "ratio"), [(0, 1.0), (1, 1.0), (9, 1.0), (10, 0.75), (30, 0.25), (40, 0.0)])
def test_ratio(first_dirty: int, ratio: float) -> None:
    """
    It is the bytes of dirty segments divided by all bytes; a partly dirty segment is dirty.
    """
    assert found(log(OLD, OLD, OLD, OLD), first_dirty).ratio == ratio


def test_ratio_counts_bytes() -> None:
    """
    Large segments weigh more than small ones.
    """
    sizes = [300, 50, 50]
    segments = [AgedSegment(FullSegment(n * 10, n * 10 + 10, size), 0, 0) for n, size in enumerate(sizes)]
    assert found(segments, 10).ratio == 0.25


def test_nothing_to_do() -> None:
    """
    A log without full segments, a clean one, and one of empty segments are worth nothing.
    """
    for here in (found([]), found(log(OLD, OLD), 20), found([], 7)):
        assert not here.is_worth_it(TopicConfig(min_cleanable_dirty_ratio=0.0))
        assert here.ratio == 0
    assert (found([], 7).end, found(log(OLD), 10).end) == (7, 10)
    assert found(log(OLD, size=0)).ratio == 0


def test_least_ratio() -> None:
    """
    A log is compacted when its ratio exceeds `min.cleanable.dirty.ratio`.
    """
    here = found(log(OLD, OLD), 10)
    assert not here.is_worth_it(TopicConfig(min_cleanable_dirty_ratio=0.5))
    assert here.is_worth_it(TopicConfig(min_cleanable_dirty_ratio=0.49))
    assert here.is_worth_it(TopicConfig(min_cleanable_dirty_ratio=0.0))
    assert not found(log(OLD)).is_worth_it(TopicConfig(min_cleanable_dirty_ratio=1.0))


def test_nothing_behind_the_stable_offset() -> None:
    """
    A segment that ends behind the last stable offset is not compacted, nor are later ones.
    """
    assert [found(log(OLD, OLD, OLD), stable=stable).end for stable in (9, 10, 19, 20, 30)] == [0, 10, 10, 20, 30]


def test_least_lag() -> None:
    """
    With `min.compaction.lag.ms` the first segment with a younger record is not compacted, nor are later ones.
    """
    segments = log((0, NOW_MS - 100), (0, NOW_MS - 99), (0, 0))
    assert [found(segments, min_compaction_lag_ms=lag_ms).end for lag_ms in (0, 99, 100, 101)] == [30, 30, 10, 0]


def test_least_lag_is_of_what_is_dirty() -> None:
    """
    The clean part is rewritten with the rest, however young it is.
    """
    segments = log((0, NOW_MS), (0, 0), (0, NOW_MS))
    assert found(segments, 10, min_compaction_lag_ms=1).end == 20
    assert found(segments, 9, min_compaction_lag_ms=1).segments == []


@pytest.mark.parametrize(("first_timestamp", "is_due"), [(0, True), (NOW_MS - 101, True), (NOW_MS - 100, False)])
def test_largest_lag(first_timestamp: int, is_due: bool) -> None:
    """
    Records dirty for longer than `max.compaction.lag.ms` are due whatever the ratio.
    """
    here = found(log(OLD, OLD, OLD, (first_timestamp, 0)), 30, max_compaction_lag_ms=100)
    assert here.is_due == is_due
    assert here.is_worth_it(TopicConfig(min_cleanable_dirty_ratio=0.9)) == is_due


def test_largest_lag_is_of_what_is_dirty() -> None:
    """
    The clean part is never due, nor is what must not be compacted yet.
    """
    assert not found(log(OLD, OLD), 20, max_compaction_lag_ms=100).is_due
    assert not found(log(OLD, OLD), 20, max_compaction_lag_ms=100).is_worth_it(TopicConfig())
    assert not found(log((NOW_MS, NOW_MS), OLD), 0, 10, max_compaction_lag_ms=100).is_due


def test_the_oldest_counts() -> None:
    """
    A segment whose first batch has no timestamp, such as one that covers removed batches, does not decide when others
    are due.
    """
    assert found(log((-1, 5), (NOW_MS, NOW_MS), OLD), max_compaction_lag_ms=100).is_due
    assert not found(log((-1, 5), (NOW_MS, NOW_MS)), max_compaction_lag_ms=100).is_due
    assert not found(log((-1, -1)), max_compaction_lag_ms=100).is_due


def test_lags_of_a_topic() -> None:
    """
    The age of records matters if one of the lags is set.
    """
    assert not TopicConfig().has_compaction_lag
    assert TopicConfig(min_compaction_lag_ms=1).has_compaction_lag
    assert TopicConfig(max_compaction_lag_ms=LONG_MAX - 1).has_compaction_lag


def test_segments_are_full_in_time() -> None:
    """
    A compacted topic rolls a segment when its content is due; other topics follow `segment.ms`.
    """
    lag: dict[str, Any] = {"max_compaction_lag_ms": HOUR_MS, "segment_ms": 2 * HOUR_MS}
    assert TopicConfig(cleanup_policy=("compact",), **lag).roll_ms == HOUR_MS
    assert TopicConfig(cleanup_policy=("delete", "compact"), **lag).roll_ms == HOUR_MS
    assert TopicConfig(cleanup_policy=("delete",), **lag).roll_ms == 2 * HOUR_MS
    assert TopicConfig(cleanup_policy=("compact",), **lag | {"segment_ms": 5}).roll_ms == 5


@pytest.mark.parametrize(
    ("policy", "compacts"), [(("delete",), False), (("compact",), True), (("compact", "delete"), True)]
)
def test_which_topics_are_compacted(policy: tuple[str, ...], compacts: bool) -> None:
    """
    `cleanup.policy` decides.
    """
    assert TopicConfig(cleanup_policy=policy).compacts == compacts
