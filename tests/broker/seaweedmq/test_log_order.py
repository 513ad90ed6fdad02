"""
The places of messages whose offsets are not in order.
"""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgateway.broker.seaweedmq.formats.log_entry import LoggedMessage
from kgateway.broker.seaweedmq.formats.log_order import NEIGHBOURS, counted, places

_FIRST, _COUNT = 100, 400
_IN_ORDER = range(_FIRST, _FIRST + _COUNT)


def disordered(seed: int, moves: int, distance: int) -> list[int]:
    """
    Offsets of which some come later than they should, far from one another.
    """
    random, offsets = Random(seed), list(_IN_ORDER)
    for number in range(moves):
        index = number * _COUNT // moves + random.randrange(_COUNT // moves - distance)
        offsets.insert(index + random.randrange(1, distance), offsets.pop(index))
    return offsets


@given(st.integers(0, 1 << 20), st.integers(0, 4), st.integers(2, 30))
def test_a_message_counts_where_it_is(seed: int, moves: int, distance: int) -> None:
    """
    The places are the same however many messages were overtaken.
    """
    assert list(places(disordered(seed, moves, distance))) == list(_IN_ORDER)


@given(st.integers(0, 1 << 20), st.integers(NEIGHBOURS, _COUNT - NEIGHBOURS))
def test_places_do_not_depend_on_where_a_file_begins(seed: int, cut: int) -> None:
    """
    A file may end after a message that has overtaken the first one of the next file.
    """
    offsets = disordered(seed, 2, 20)
    assert list(places(offsets[:cut])) == list(_IN_ORDER[:cut])
    assert list(places(offsets[cut:])) == list(_IN_ORDER[cut:])


def test_a_file_ends_or_begins_between_messages_that_changed_places() -> None:
    assert list(places([*range(40), 41])) == list(range(41))
    assert list(places([40, *range(42, 90)])) == list(range(41, 90))


@pytest.mark.parametrize(
    ("offsets", "expected"),
    [
        ([], []),
        ([7], [7]),
        ([3, 5, 4, 6], [3, 4, 5, 6]),
        ([5, 4, 6], [4, 5, 6]),
        ([3, 4, 7], [3, 4, 7]),
        ([1, 2, 3, 1, 2, 3], [1, 2, 3, 1, 2, 3]),
        ([1, 2, 3, 1_000, 1_001], [1, 2, 3, 1_000, 1_001]),
        ([*range(100), *range(500, 600)], [*range(100), *range(500, 600)]),
        ([*range(100), *range(50, 150)], [*range(100), *range(50, 150)]),
    ],
)
def test_missing_and_repeated_offsets_stay(offsets: list[int], expected: list[int]) -> None:
    """
    Only neighbours change places.
    """
    assert list(places(offsets)) == expected


@pytest.mark.parametrize("offsets", [[7, 8, 9, 10], [7, 9, 8, 10], [7, 70, 3, 7]])
def test_messages_of_a_file_are_counted(offsets: list[int]) -> None:
    """
    Whatever numbers follow that of the first one.
    """
    entries = [LoggedMessage(offset, number + 1, b"", b"%d" % offset) for number, offset in enumerate(offsets)]
    expected = [entry._replace(offset=7 + number) for number, entry in enumerate(entries)]
    assert list(counted(iter(entries), None)) == expected
    assert list(counted(iter(entries), 70)) == [entry._replace(offset=entry.offset + 63) for entry in expected]
