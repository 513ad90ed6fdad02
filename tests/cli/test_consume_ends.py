"""
How far is read.
"""

import pytest

from kgateway.cli.consume_ends import ends
from kgateway.cli.places import END, Kind, Place
from kgateway.client.offsets import Extent, Partition
from kgateway.records.record import Record

ONE = Partition("orders", 0)
LOGS = {ONE: Extent(5, 25)}
TIME = Place(Kind.TIME, 1_000)


def batch(first: int, count: int, timestamp: int = 0) -> list[Record]:
    """
    Records, a millisecond apart.
    """
    return [Record(first + number, timestamp + number, None, None) for number in range(count)]


@pytest.mark.parametrize(
    ("until", "found", "follow", "end"),
    [
        (None, None, False, 25),
        (None, None, True, None),
        (END, 25, True, 25),
        (Place(Kind.OFFSET, 9), 9, False, 9),
        (Place(Kind.OFFSET, 99), 99, False, 25),
        (Place(Kind.OFFSET, 99), 99, True, 99),
        (TIME, None, False, 25),
        (TIME, None, True, None),
        (TIME, 7, True, 7),
    ],
)
def test_where_a_log_is_done_with(until: Place | None, found: int | None, follow: bool, end: int | None) -> None:
    """
    Who does not follow goes no further than what is there.
    """
    assert ends(until, {ONE: found}, LOGS, follow).offsets == {ONE: end}


def test_the_end_is_not_read() -> None:
    """
    A batch that goes beyond it is cut there, and the log is done with.
    """
    goal = ends(Place(Kind.OFFSET, 9), {ONE: 9}, LOGS, False)
    assert goal.take(ONE, batch(5, 3)) == batch(5, 3)
    assert goal.done == set()
    assert goal.take(ONE, batch(8, 3)) == batch(8, 1)
    assert goal.done == {ONE}


def test_a_log_may_end_between_batches() -> None:
    """
    Which the next offset tells, also where the records before it are gone.
    """
    goal = ends(None, {}, LOGS, False)
    goal.look(ONE, 24)
    assert goal.done == set()
    goal.look(ONE, 25)
    assert goal.done == {ONE}


def test_a_time_that_is_to_come() -> None:
    """
    Is looked for in what comes: the first record of it ends the reading.
    """
    goal = ends(TIME, {ONE: None}, LOGS, True)
    assert goal.take(ONE, batch(25, 3, timestamp=900)) == batch(25, 3, timestamp=900)
    assert goal.take(ONE, batch(28, 9, timestamp=996)) == batch(28, 4, timestamp=996)
    assert goal.done == {ONE}


def test_no_more_than_so_many() -> None:
    """
    Of all logs together.
    """
    goal = ends(None, {}, LOGS, False)
    goal.left = 4
    assert goal.take(ONE, batch(5, 3)) == batch(5, 3)
    assert not goal.has_enough
    assert goal.take(ONE, batch(8, 3)) == batch(8, 1)
    assert goal.has_enough
