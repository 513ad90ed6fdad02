"""
Where a group is to go on reading.
"""

from hypothesis import given
from hypothesis import strategies as st

from kgateway.cli.groups_plan import Move, Wanted, plan
from kgateway.client.offsets import Extent, Partition

ONE = Partition("orders", 1)
LOG = Extent(10, 20)


def move(wanted: Wanted, extent: Extent | None = LOG, committed: int | None = 15) -> Move:
    """
    The plan for one partition.
    """
    [planned] = plan({ONE: wanted}, {} if committed is None else {ONE: committed}, {ONE: extent} if extent else {})
    return planned


def test_what_is_asked_for_is_planned() -> None:
    """
    With what was said of it; the ends of the log are part of it.
    """
    assert move(Wanted(12, "a note")) == Move(ONE, 15, 12, 20, "a note")
    assert (move(Wanted(10)).aim, move(Wanted(20)).aim) == (10, 20)
    assert move(Wanted(10)).note == move(Wanted(20)).note == ""


def test_no_aim_is_outside_the_log() -> None:
    """
    A note says what was asked for.
    """
    assert move(Wanted(9)) == Move(ONE, 15, 10, 20, "9 was asked for, and the log begins at 10")
    assert move(Wanted(21), committed=None) == Move(ONE, None, 20, 20, "21 was asked for, and the log ends at 20")


def test_a_partition_that_is_not_there_has_no_aim() -> None:
    """
    Nor has one for which none could be found.
    """
    assert move(Wanted(12), None) == Move(ONE, 15, None, None, "there is no such partition")
    assert move(Wanted(None, "why")) == Move(ONE, 15, None, 20, "why")


def test_lag_is_what_will_be_read() -> None:
    """
    Where there is no aim it is not known.
    """
    assert move(Wanted(12)).lag == 8
    assert move(Wanted(None)).lag is None


def test_partitions_are_in_order() -> None:
    """
    By topic, and then by number.
    """
    wanted = {Partition(topic, index): Wanted(0) for topic in ("b", "a") for index in (10, 9)}
    assert [str(one.partition) for one in plan(wanted, {}, {})] == ["a-9", "a-10", "b-9", "b-10"]


@given(st.integers(), st.integers(0, 100), st.integers(0, 100))
def test_any_aim_is_in_the_log(wanted: int, start: int, size: int) -> None:
    """
    Whatever is asked for.
    """
    planned = move(Wanted(wanted), Extent(start, start + size))
    assert planned.aim is not None
    assert start <= planned.aim <= start + size
    assert (planned.aim == wanted) == (not planned.note)
