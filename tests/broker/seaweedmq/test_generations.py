"""
Which generations a topic's folders are of.
"""

from typing import Any, cast

import pytest
from twisted.internet.defer import Deferred

from kgateway.broker.seaweed.protos.filer_pb2 import Entry
from kgateway.broker.seaweedmq.generations import Made, Missed, grouped, missed
from kgateway.broker.seaweedmq.kept_topic import KeptTopic
from kgateway.broker.seaweedmq.layout import (
    SECOND_NS,
    Range,
    generation_name,
    generation_second,
    range_named,
    ring_range,
    ring_ranges,
)
from kgateway.wire.uuids import ZERO
from tests.broker.behaviour import result


class Folders:
    """
    A filer that has these folders.
    """

    def __init__(self, *paths: str) -> None:
        self._paths = paths

    async def all_entries(self, folder: str) -> list[Entry]:
        inside = [path.removeprefix(f"{folder}/") for path in self._paths if path.startswith(f"{folder}/")]
        return [Entry(name=name, is_directory=True) for name in sorted({path.split("/")[0] for path in inside})]


def made(second: int, part: Range) -> str:
    return f"/t/{generation_name(second * SECOND_NS)}/{part}"


def test_what_comes_between_the_last_that_is_kept_and_todays_was_missed() -> None:
    """
    What is kept, and what is no partition's, is nothing new; and of what is older nobody knows where it belongs.
    """
    kept = KeptTopic(ZERO, ()).grown(3 * SECOND_NS, ring_ranges(1), []).grown(5 * SECOND_NS + 7, ring_ranges(2), [])
    old, kept_ones = made(4, ring_range(0, 1)), [made(3, ring_range(0, 1)), made(5, ring_range(1, 2))]
    new = [made(5, ring_range(0, 3)), made(6, ring_range(1, 2)), made(8, ring_range(0, 2))]
    rest = [made(9, ring_range(0, 1)), "/t/.kgateway/0", "/t/v1970-01-01-00-00-06/consumers"]
    today = Made(8 * SECOND_NS + 9, ring_ranges(2))
    filer = cast(Any, Folders(old, *kept_ones, *new, *rest))
    found = result(Deferred.fromCoroutine(missed(filer, "/t", kept, today)))
    generations = [Made(5 * SECOND_NS, ring_ranges(3)), Made(6 * SECOND_NS, ring_ranges(2))]
    assert found == Missed(generations, [old.removeprefix("/t/")])


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
