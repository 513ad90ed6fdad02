"""
Where reading ends.
"""

import pytest

from kgateway.cli.common.offset_spec import END, Kind, OffsetSpec
from kgateway.cli.consume.reader import ends
from kgateway.client.offsets import Extent
from kgateway.records.record import Record
from kgateway.topic_partition import TopicPartition

ONE = TopicPartition("orders", 0)
LOGS = {ONE: Extent(5, 25)}
TIME = OffsetSpec(Kind.TIME, 1_000)


def batch(first: int, count: int, timestamp: int = 0) -> list[Record]:
    """
    Records whose timestamps are a millisecond apart.
    """
    return [Record(first + number, timestamp + number, None, None) for number in range(count)]


@pytest.mark.parametrize(
    ("until", "found", "follow", "end"),
    [
        (None, None, False, 25),
        (None, None, True, None),
        (END, 25, True, 25),
        (OffsetSpec(Kind.OFFSET, 9), 9, False, 9),
        (OffsetSpec(Kind.OFFSET, 99), 99, False, 25),
        (OffsetSpec(Kind.OFFSET, 99), 99, True, 99),
        (TIME, None, False, 25),
        (TIME, None, True, None),
        (TIME, 7, True, 7),
    ],
)
def test_ends(until: OffsetSpec | None, found: int | None, follow: bool, end: int | None) -> None:
    """
    Without --follow reading ends at the current end of the log.
    """
    assert ends(until, {ONE: found}, LOGS, follow).offsets == {ONE: end}


def test_a_batch_is_cut_at_the_end() -> None:
    """
    The end is exclusive; the log is finished there.
    """
    goal = ends(OffsetSpec(Kind.OFFSET, 9), {ONE: 9}, LOGS, False)
    assert goal.take(ONE, batch(5, 3)) == batch(5, 3)
    assert goal.done == set()
    assert goal.take(ONE, batch(8, 3)) == batch(8, 1)
    assert goal.done == {ONE}


def test_a_log_may_end_between_batches() -> None:
    """
    The reader's position shows the end, even if the records before it are gone.
    """
    goal = ends(None, {}, LOGS, False)
    goal.reach(ONE, 24)
    assert goal.done == set()
    goal.reach(ONE, 25)
    assert goal.done == {ONE}


def test_a_time_in_the_future() -> None:
    """
    Reading ends before the first record that is late enough.
    """
    goal = ends(TIME, {ONE: None}, LOGS, True)
    assert goal.take(ONE, batch(25, 3, timestamp=900)) == batch(25, 3, timestamp=900)
    assert goal.take(ONE, batch(28, 9, timestamp=996)) == batch(28, 4, timestamp=996)
    assert goal.done == {ONE}


def test_a_count() -> None:
    """
    The count is of all logs together.
    """
    goal = ends(None, {}, LOGS, False)
    goal.left = 4
    assert goal.take(ONE, batch(5, 3)) == batch(5, 3)
    assert not goal.has_enough
    assert goal.take(ONE, batch(8, 3)) == batch(8, 1)
    assert goal.has_enough
