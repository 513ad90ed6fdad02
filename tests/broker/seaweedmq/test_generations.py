"""
Which generations a topic's folders are of.
"""

import pytest

from kgateway.broker.seaweedmq.generations import grouped
from kgateway.broker.seaweedmq.layout import Range, generation_second, range_named, ring_range, ring_ranges


@pytest.mark.parametrize("count", [1, 2, 3, 7, 13, 2520])
def test_ranges_of_the_whole_ring_are_one_generation(count: int) -> None:
    assert grouped(set(ring_ranges(count))) == ([ring_ranges(count)], ())


def test_others_may_divide_the_ring_as_they_like() -> None:
    """
    Where nothing is missing, the order of the ranges is that of the partitions.
    """
    parts = [Range(0, 5), Range(5, 1000), Range(1000, 2520)]
    assert grouped(set(parts)) == ([parts], ())


@pytest.mark.parametrize(("index", "count"), [(0, 2), (1, 2), (1, 3), (2, 3), (4, 7), (11, 12)])
def test_a_range_alone_tells_how_many_there_were(index: int, count: int) -> None:
    """
    The others had no messages. At least its own index is known.
    """
    (found,), rest = grouped({ring_range(index, count)})
    assert not rest
    assert found[index] == ring_range(index, count)
    assert len(found) <= count


def test_what_was_made_in_one_second_is_told_apart() -> None:
    """
    By the sizes of the ranges; the topic is taken to have grown.
    """
    assert grouped({*ring_ranges(3), ring_range(1, 2), ring_range(0, 1)}) == (
        [ring_ranges(1), ring_ranges(2), ring_ranges(3)],
        set(),
    )


def test_what_no_number_of_partitions_makes_is_left() -> None:
    assert grouped({Range(7, 11), ring_range(0, 2)}) == ([ring_ranges(2)], {Range(7, 11)})
    assert grouped(set()) == ([], set())


def test_names_of_folders() -> None:
    """
    Others than those of generations and ranges are passed over.
    """
    assert generation_second("v1970-01-01-00-00-05") == 5
    assert [generation_second(name) for name in ("1970-01-01-00-00-05", "v5", ".kgateway", "")] == [None] * 4
    assert range_named("0630-1260") == Range(630, 1260)
    assert [range_named(name) for name in ("0630", "0630-1260.offset", "a-b", "")] == [None] * 4
