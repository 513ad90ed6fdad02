"""
Which of a log's oldest segments retention deletes.
"""

from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgateway.broker.partition.retention import Deletable, LogExtent, RetentionLimits, expired, retention_limits
from kgateway.cluster.config import TopicConfig
from kgateway.cluster.view import Topic
from kgateway.records.batch import NO_TIMESTAMP
from kgateway.wire.uuids import ONE

NOW_MS = 10_000
ENDLESS = RetentionLimits(-1, -1)


def log_of(*sizes: int, newest_ms: int = NOW_MS) -> list[Deletable]:
    """
    Segments of these sizes with ten offsets each.
    """
    return [Deletable(size, 10 * number, newest_ms) for number, size in enumerate(sizes, 1)]


def aged(*newest_ms: int) -> list[Deletable]:
    """
    Segments with these largest timestamps, of a hundred bytes and ten offsets each.
    """
    return [Deletable(100, 10 * number, newest) for number, newest in enumerate(newest_ms, 1)]


def deleted_count(
    segments: Sequence[Deletable], retention: RetentionLimits, log_start: int = 0, high_watermark: int | None = None
) -> int:
    """
    How many segments are deleted; by default all are below the high watermark.
    """
    end = segments[-1].end if high_watermark is None else high_watermark
    return expired(segments, LogExtent(sum(segment.size for segment in segments), log_start, end), retention, NOW_MS)


@pytest.mark.parametrize(
    ("newest_ms", "retention_ms", "count"),
    [
        ((1, 2, 3), -1, 0),
        ((9_000, 9_500, 10_000), 1_000, 0),  # exactly a second old is not more than a second old
        ((8_999, 9_500, 10_000), 1_000, 1),
        ((8_999, 8_998, 10_000), 1_000, 2),
        ((9_500, 1, 10_000), 1_000, 0),  # the first one is kept, and so are all behind it
        ((1, 2, 3), 1_000, 3),  # the last one is deleted too
        ((99_999, 1), 0, 0),  # in the future
        ((10_000, 10_000), 0, 0),
        ((9_999, 9_999), 0, 2),
    ],
)
def test_expired_segments_are_deleted(newest_ms: tuple[int, ...], retention_ms: int, count: int) -> None:
    """
    A segment is deleted when its newest record is older than the retention and all before it are deleted.
    """
    assert deleted_count(aged(*newest_ms), RetentionLimits(retention_ms, -1)) == count


@pytest.mark.parametrize(
    ("sizes", "retention_bytes", "count"),
    [
        ((100, 100, 100), -1, 0),
        ((100, 100, 100), -7, 0),
        ((100, 100, 100), 300, 0),
        ((100, 100, 100), 201, 0),  # without the first it would be less
        ((100, 100, 100), 200, 1),
        ((100, 100, 100), 1, 2),
        ((100, 100, 100), 0, 3),
        ((300, 1, 1), 100, 0),
        ((1, 300, 1), 300, 1),  # the first one that is too large to delete ends it
    ],
)
def test_segments_beyond_the_size_are_deleted(sizes: tuple[int, ...], retention_bytes: int, count: int) -> None:
    """
    A segment is deleted while the rest still has as many bytes as the topic keeps.
    """
    assert deleted_count(log_of(*sizes), RetentionLimits(-1, retention_bytes)) == count


@pytest.mark.parametrize(("log_start", "count"), [(0, 0), (9, 0), (10, 1), (19, 1), (20, 2), (30, 2)])
def test_segments_below_the_log_start_are_deleted(log_start: int, count: int) -> None:
    """
    Whatever the retention, they are deleted, except for the active segment.
    """
    assert deleted_count(log_of(1, 1, 1), ENDLESS, log_start) == count


@pytest.mark.parametrize(("high_watermark", "count"), [(0, 0), (9, 0), (10, 1), (29, 2), (30, 3)])
def test_segments_above_the_high_watermark_are_kept(high_watermark: int, count: int) -> None:
    assert deleted_count(aged(1, 2, 3), RetentionLimits(0, 0), high_watermark=high_watermark) == count
    assert deleted_count(aged(1, 2, 3), ENDLESS, 30, high_watermark) == min(count, 2)


def test_an_empty_last_segment_is_kept() -> None:
    """
    Age does not delete it.
    """
    segments = [Deletable(100, 10, 1), Deletable(0, 10, NO_TIMESTAMP)]
    assert deleted_count(segments, RetentionLimits(0, 0)) == 1
    assert deleted_count(segments[1:], RetentionLimits(0, 0)) == 0


def test_records_without_a_timestamp() -> None:
    """
    Segments without any timestamp are judged by the time of their last write, others are not.
    """
    assert deleted_count([Deletable(1, 1, NO_TIMESTAMP, changed_ms=8_999)], RetentionLimits(1_000, -1)) == 1
    assert deleted_count([Deletable(1, 1, NO_TIMESTAMP, changed_ms=9_000)], RetentionLimits(1_000, -1)) == 0
    assert deleted_count([Deletable(1, 1, 9_000, changed_ms=1)], RetentionLimits(1_000, -1)) == 0
    assert deleted_count([Deletable(1, 1, 0, changed_ms=NOW_MS)], RetentionLimits(1_000, -1)) == 1


def test_one_segment_behind_the_deleted_ones_is_examined() -> None:
    """
    The walk looks one further than the first segment kept, to see whether there is one.
    """
    asked = list[int]()

    def segments() -> Iterator[Deletable]:
        for number, segment in enumerate(aged(1, 9_999, 1, 1)):
            asked.append(number)
            yield segment

    assert expired(segments(), LogExtent(400, 0, 40), RetentionLimits(1_000, -1), NOW_MS) == 1
    assert asked == [0, 1, 2]


@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3), st.integers(NOW_MS - 5, NOW_MS + 2)), min_size=1),
    st.integers(-1, 6),
    st.integers(-1, 20),
    st.integers(0, 30),
    st.integers(0, 30),
)
def test_one_walk_deletes_what_kafkas_three_rounds_delete(
    rows: list[tuple[int, int, int]], retention_ms: int, retention_bytes: int, log_start: int, high_watermark: int
) -> None:
    """
    Kafka deletes below the log start first, then by size, then by age.
    """
    ends, segments = 0, list[Deletable]()
    for size, count, newest_ms in rows:
        ends += count
        segments.append(Deletable(size, ends, newest_ms))
    left = list(segments)

    def prefix(deletions: list[bool]) -> None:
        for number, is_deleted in enumerate(deletions):
            is_last = number == len(deletions) - 1
            if not is_deleted or left[0].end > high_watermark or (is_last and not left[0].size):
                return
            left.pop(0)

    prefix([segment.end <= log_start and segment is not left[-1] for segment in left])
    if retention_bytes >= 0:
        spare, deletions = sum(segment.size for segment in left) - retention_bytes, list[bool]()
        for segment in left:
            spare -= segment.size
            deletions.append(spare >= 0)
        prefix(deletions)
    if retention_ms >= 0:
        prefix([NOW_MS - segment.largest_timestamp > retention_ms for segment in left])
    retention = RetentionLimits(retention_ms, retention_bytes)
    assert deleted_count(segments, retention, log_start, high_watermark) == len(segments) - len(left)


def test_retention_needs_the_delete_policy() -> None:
    """
    The retention of a topic applies if its policy is to delete; coordinator state is kept.
    """
    config = TopicConfig(retention_ms=5, retention_bytes=6)
    assert retention_limits(Topic(ONE, "t", (), config)) == RetentionLimits(5, 6)
    assert retention_limits(Topic(ONE, "t", (), config, internal=True)) == ENDLESS
    for policy, retention in ((("compact",), ENDLESS), ((), ENDLESS), (("compact", "delete"), RetentionLimits(5, 6))):
        config = TopicConfig(retention_ms=5, retention_bytes=6, cleanup_policy=policy)
        assert retention_limits(Topic(ONE, "t", (), config)) == retention, policy
    assert retention_limits(Topic(ONE, "t", ())) == RetentionLimits(604_800_000, -1)
    assert [RetentionLimits(*both).are_none for both in ((-1, -1), (0, -1), (-1, 0))] == [True, False, False]
