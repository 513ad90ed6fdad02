"""
Ranges of offsets, divided into tasks.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgateway.client.offsets import Extent
from kgateway.spark.logs.offset_range import OffsetRange, limited, split, within
from kgateway.topic_partition import TopicPartition

ORDERS = [TopicPartition("orders", index) for index in range(4)]
_SIZES = st.lists(st.integers(0, 1_000), min_size=1, max_size=4)


def ranges(sizes: list[int]) -> list[OffsetRange]:
    """
    Adjacent ranges of these sizes.
    """
    return [OffsetRange(partition, 10, 10 + size) for partition, size in zip(ORDERS, sizes, strict=False)]


def offsets(of: list[OffsetRange]) -> list[tuple[TopicPartition, int]]:
    """
    All offsets of these ranges, one by one.
    """
    return [(one.partition, offset) for one in of for offset in range(one.start, one.end)]


@given(_SIZES, st.integers(0, 40), st.integers(0, 300))
def test_pieces_cover_the_range(sizes: list[int], min_partitions: int, most: int) -> None:
    """
    Each offset is in one piece; pieces do not exceed the limit, and are as many as requested if there are enough
    offsets.
    """
    pieces = split(ranges(sizes), min_partitions, most)
    assert offsets(pieces) == offsets(ranges(sizes))
    assert all(len(piece) for piece in pieces)
    assert not most or max(map(len, pieces), default=0) <= most
    assert len(pieces) >= min(min_partitions, sum(sizes)) or not min_partitions


def test_a_range_is_one_piece() -> None:
    """
    A partition is one task by default.
    """
    assert split(ranges([5, 0, 7]), 0, 0) == [one for one in ranges([5, 0, 7]) if len(one)]


@given(_SIZES, st.integers(1, 500))
def test_a_limit_is_shared(sizes: list[int], most: int) -> None:
    """
    All partitions together stay below the limit, except that each gets at least one offset.
    """
    starts = dict.fromkeys(ORDERS[: len(sizes)], 100)
    ends = {one: 100 + size for one, size in zip(starts, sizes, strict=True)}
    found = limited(starts, ends, most)
    assert all(starts[one] <= found[one] <= ends[one] for one in ends)
    assert all(found[one] > starts[one] for one in ends if ends[one] > starts[one])
    assert sum(found[one] - starts[one] for one in ends) <= most + len(ends)
    assert sum(sizes) > most or found == ends


def test_shares_are_proportional_to_sizes() -> None:
    starts = dict.fromkeys(ORDERS[:2], 0)
    assert limited(starts, {ORDERS[0]: 300, ORDERS[1]: 100}, 40) == {ORDERS[0]: 30, ORDERS[1]: 10}
    assert limited(starts, {ORDERS[0]: 999, ORDERS[1]: 1}, 10) == {ORDERS[0]: 9, ORDERS[1]: 1}


@pytest.mark.parametrize(
    ("start", "end", "there", "told"),
    [
        (10, 20, (10, 20), ""),
        (12, 12, (12, 12), ""),
        (5, 5, (10, 10), ""),
        (5, 15, (10, 15), "offsets 5 to 9 were requested"),
        (2, 8, (10, 10), "offsets 2 to 7 were requested"),
        (15, 25, (15, 20), "ends at offset 20, but 25 was requested"),
        (25, 30, (20, 20), "ends at offset 20, but 30 was requested"),
        (25, 22, (20, 20), "ends at offset 20, but 25 was requested"),
    ],
)
def test_missing_offsets_are_reported(start: int, end: int, there: tuple[int, int], told: str) -> None:
    """
    The part of a range outside the log is reported.
    """
    found, lost = within(OffsetRange(ORDERS[0], start, end), Extent(10, 20))
    assert (found.start, found.end) == there
    assert told in (lost or "")
    assert bool(lost) == bool(told)
