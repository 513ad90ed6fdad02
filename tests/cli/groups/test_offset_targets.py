"""
The targets of a reset, limited to each log.
"""

from hypothesis import given
from hypothesis import strategies as st

from kgateway.cli.groups.offset_targets import Move, Target, plan
from kgateway.client.offsets import Extent
from kgateway.topic_partition import TopicPartition

ONE = TopicPartition("orders", 1)
LOG = Extent(10, 20)


def move(wanted: Target, extent: Extent | None = LOG, committed: int | None = 15) -> Move:
    """
    The plan for one partition.
    """
    [planned] = plan({ONE: wanted}, {} if committed is None else {ONE: committed}, {ONE: extent} if extent else {})
    return planned


def test_a_target_is_planned() -> None:
    """
    It keeps its note; both ends of the log are valid targets.
    """
    assert move(Target(12, "a note")) == Move(ONE, 15, 12, 20, "a note")
    assert (move(Target(10)).target, move(Target(20)).target) == (10, 20)
    assert move(Target(10)).note == move(Target(20)).note == ""


def test_no_target_is_outside_the_log() -> None:
    """
    A note has the requested offset.
    """
    assert move(Target(9)) == Move(ONE, 15, 10, 20, "9 requested, but the log begins at 10")
    assert move(Target(21), committed=None) == Move(ONE, None, 20, 20, "21 requested, but the log ends at 20")


def test_a_missing_partition_has_no_target() -> None:
    """
    A partition without a found offset has none either.
    """
    assert move(Target(12), None) == Move(ONE, 15, None, None, "there is no such partition")
    assert move(Target(None, "why")) == Move(ONE, 15, None, 20, "why")


def test_lag_follows_the_target() -> None:
    """
    Without a target the lag is unknown.
    """
    assert move(Target(12)).lag == 8
    assert move(Target(None)).lag is None


def test_partitions_are_sorted() -> None:
    wanted = {TopicPartition(topic, index): Target(0) for topic in ("b", "a") for index in (10, 9)}
    assert [str(one.partition) for one in plan(wanted, {}, {})] == ["a-9", "a-10", "b-9", "b-10"]


@given(st.integers(), st.integers(0, 100), st.integers(0, 100))
def test_any_offset_is_limited_to_the_log(wanted: int, start: int, size: int) -> None:
    planned = move(Target(wanted), Extent(start, start + size))
    assert planned.target is not None
    assert start <= planned.target <= start + size
    assert (planned.target == wanted) == (not planned.note)
