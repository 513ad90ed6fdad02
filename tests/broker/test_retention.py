"""
Which of a log's oldest records go.
"""

from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgateway.broker.retention import Limits, Piece, Standing, expired, limits_of
from kgateway.cluster.config import TopicConfig
from kgateway.cluster.view import Topic
from kgateway.records.batch import NO_TIMESTAMP
from kgateway.wire.uuids import ONE

NOW_MS = 10_000
ENDLESS = Limits(-1, -1)


def log_of(*sizes: int, newest_ms: int = NOW_MS) -> list[Piece]:
    """
    Pieces of these sizes, ten offsets each.
    """
    return [Piece(size, 10 * number, newest_ms) for number, size in enumerate(sizes, 1)]


def aged(*newest_ms: int) -> list[Piece]:
    """
    Pieces with these largest timestamps, of a hundred bytes and ten offsets each.
    """
    return [Piece(100, 10 * number, newest) for number, newest in enumerate(newest_ms, 1)]


def gone(pieces: Sequence[Piece], retention: Limits, log_start: int = 0, high_watermark: int | None = None) -> int:
    """
    How many go; all is before the high watermark unless it is given.
    """
    end = pieces[-1].end if high_watermark is None else high_watermark
    return expired(pieces, Standing(sum(piece.size for piece in pieces), log_start, end), retention, NOW_MS)


@pytest.mark.parametrize(
    ("newest_ms", "retention_ms", "count"),
    [
        ((1, 2, 3), -1, 0),
        ((9_000, 9_500, 10_000), 1_000, 0),  # a second ago is not more than a second ago
        ((8_999, 9_500, 10_000), 1_000, 1),
        ((8_999, 8_998, 10_000), 1_000, 2),
        ((9_500, 1, 10_000), 1_000, 0),  # the first one stays, and so do all behind it
        ((1, 2, 3), 1_000, 3),  # the last one too
        ((99_999, 1), 0, 0),  # from the future
        ((10_000, 10_000), 0, 0),
        ((9_999, 9_999), 0, 2),
    ],
)
def test_old_pieces_go(newest_ms: tuple[int, ...], retention_ms: int, count: int) -> None:
    """
    A piece goes when its newest record is older than the retention, if all before it go.
    """
    assert gone(aged(*newest_ms), Limits(retention_ms, -1)) == count


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
        ((1, 300, 1), 300, 1),  # it stops at the first that is too large to go
    ],
)
def test_what_is_too_much_goes(sizes: tuple[int, ...], retention_bytes: int, count: int) -> None:
    """
    A piece goes when without it there is still as much as is to be kept.
    """
    assert gone(log_of(*sizes), Limits(-1, retention_bytes)) == count


@pytest.mark.parametrize(("log_start", "count"), [(0, 0), (9, 0), (10, 1), (19, 1), (20, 2), (30, 2)])
def test_what_is_before_the_log_start_goes(log_start: int, count: int) -> None:
    """
    Whatever the retention, a piece goes that ends before the log start; the one that is written to does not.
    """
    assert gone(log_of(1, 1, 1), ENDLESS, log_start) == count


@pytest.mark.parametrize(("high_watermark", "count"), [(0, 0), (9, 0), (10, 1), (29, 2), (30, 3)])
def test_what_is_not_safe_stays(high_watermark: int, count: int) -> None:
    """
    Nothing goes that reaches behind the high watermark.
    """
    assert gone(aged(1, 2, 3), Limits(0, 0), high_watermark=high_watermark) == count
    assert gone(aged(1, 2, 3), ENDLESS, 30, high_watermark) == min(count, 2)


def test_an_empty_end_stays() -> None:
    """
    The last piece does not go for its age while nothing is in it.
    """
    pieces = [Piece(100, 10, 1), Piece(0, 10, NO_TIMESTAMP)]
    assert gone(pieces, Limits(0, 0)) == 1
    assert gone(pieces[1:], Limits(0, 0)) == 0


def test_records_without_a_timestamp() -> None:
    """
    Where no record has a timestamp, it counts when the piece was last written to; else that does not.
    """
    assert gone([Piece(1, 1, NO_TIMESTAMP, changed_ms=8_999)], Limits(1_000, -1)) == 1
    assert gone([Piece(1, 1, NO_TIMESTAMP, changed_ms=9_000)], Limits(1_000, -1)) == 0
    assert gone([Piece(1, 1, 9_000, changed_ms=1)], Limits(1_000, -1)) == 0
    assert gone([Piece(1, 1, 0, changed_ms=NOW_MS)], Limits(1_000, -1)) == 1


def test_no_more_is_asked_for_than_goes() -> None:
    """
    Of the pieces behind the first that stays only the next is looked at, to see whether there is one.
    """
    asked = list[int]()

    def pieces() -> Iterator[Piece]:
        for number, piece in enumerate(aged(1, 9_999, 1, 1)):
            asked.append(number)
            yield piece

    assert expired(pieces(), Standing(400, 0, 40), Limits(1_000, -1), NOW_MS) == 1
    assert asked == [0, 1, 2]


@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3), st.integers(NOW_MS - 5, NOW_MS + 2)), min_size=1),
    st.integers(-1, 6),
    st.integers(-1, 20),
    st.integers(0, 30),
    st.integers(0, 30),
)
def test_kafka_does_it_in_three_rounds(
    rows: list[tuple[int, int, int]], retention_ms: int, retention_bytes: int, log_start: int, high_watermark: int
) -> None:
    """
    What is before the log start goes first, then what is too much of the rest, then what is too old of what is left:
    the same comes out.
    """
    ends, pieces = 0, list[Piece]()
    for size, count, newest_ms in rows:
        ends += count
        pieces.append(Piece(size, ends, newest_ms))
    left = list(pieces)

    def prefix(goes: list[bool]) -> None:
        for number, goes_too in enumerate(goes):
            is_last = number == len(goes) - 1
            if not goes_too or left[0].end > high_watermark or (is_last and not left[0].size):
                return
            left.pop(0)

    prefix([piece.end <= log_start and piece is not left[-1] for piece in left])
    if retention_bytes >= 0:
        spare, goes = sum(piece.size for piece in left) - retention_bytes, list[bool]()
        for piece in left:
            spare -= piece.size
            goes.append(spare >= 0)
        prefix(goes)
    if retention_ms >= 0:
        prefix([NOW_MS - piece.largest_timestamp > retention_ms for piece in left])
    retention = Limits(retention_ms, retention_bytes)
    assert gone(pieces, retention, log_start, high_watermark) == len(pieces) - len(left)


def test_limits_of_topics() -> None:
    """
    A topic has the retention that is set for it, if its policy is to delete; the state of coordinators stays.
    """
    config = TopicConfig(retention_ms=5, retention_bytes=6)
    assert limits_of(Topic(ONE, "t", (), config)) == Limits(5, 6)
    assert limits_of(Topic(ONE, "t", (), config, internal=True)) == ENDLESS
    for policy, retention in ((("compact",), ENDLESS), ((), ENDLESS), (("compact", "delete"), Limits(5, 6))):
        config = TopicConfig(retention_ms=5, retention_bytes=6, cleanup_policy=policy)
        assert limits_of(Topic(ONE, "t", (), config)) == retention, policy
    assert limits_of(Topic(ONE, "t", ())) == Limits(604_800_000, -1)
    assert [Limits(*both).are_none for both in ((-1, -1), (0, -1), (-1, 0))] == [True, False, False]
