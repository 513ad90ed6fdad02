"""
The last offset of each key, in bounded memory.
"""

import tracemalloc
from hashlib import blake2b

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgateway.broker.log.compaction.record_filter import LastOffsets, keys_that_fit

_KEYS = st.binary(max_size=2) | st.sampled_from([b"k" * size for size in (14, 15, 16, 17, 400)])
_ROOMY = 1000


@given(keys=st.lists(_KEYS, max_size=30))
def test_like_a_dictionary(keys: list[bytes]) -> None:
    """
    A record is the latest of its key if no later one was noted, whatever the length of the key.
    """
    latest, expected = LastOffsets(_ROOMY), dict[bytes, int]()
    for offset, key in enumerate(keys):
        assert latest.note(key, offset)
        expected[key] = offset
    assert len(latest) == len(expected)
    for offset, key in enumerate(keys):
        assert latest.is_latest(key, offset) == (expected[key] == offset)


def test_unknown_keys() -> None:
    """
    Any record of an unknown key is the latest, and so is one behind the last noted one.
    """
    latest = LastOffsets(_ROOMY)
    assert latest.is_latest(b"a", 0)
    latest.note(b"a", 5)
    assert latest.is_latest(b"a", 6)
    assert not latest.is_latest(b"a", 4)


def test_a_key_is_not_the_digest_of_another() -> None:
    """
    A key of the length of a digest is itself digested.
    """
    latest, long = LastOffsets(_ROOMY), b"k" * 100
    latest.note(blake2b(long, digest_size=15).digest(), 9)
    assert latest.is_latest(long, 1)


def test_memory_is_full() -> None:
    """
    A key without room is not noted; known keys still are.
    """
    latest = LastOffsets(2)
    assert [latest.note(key, offset) for offset, key in enumerate((b"a", b"b", b"c", b"a", b"k" * 40))] == [
        True,
        True,
        False,
        True,
        False,
    ]
    assert len(latest) == 2
    assert latest.is_latest(b"c", 0)
    assert not latest.is_latest(b"a", 0)


def test_there_is_room_for_one() -> None:
    """
    However little memory there is, a round advances by one key.
    """
    latest = LastOffsets(keys_that_fit(0))
    assert latest.note(b"a", 0)
    assert not latest.note(b"b", 1)


@pytest.mark.parametrize("size", [10, 14, 15, 300])
@pytest.mark.parametrize("given_bytes", [700_000, 1_900_000, 2_000_000, 4_000_000])
def test_memory_is_what_was_given(size: int, given_bytes: int) -> None:
    """
    All keys that fit, and their sorted offsets, take no more than the given memory, whatever the length of the keys.
    """
    tracemalloc.start()
    try:
        latest = LastOffsets(keys_that_fit(given_bytes))
        number = 0
        while latest.note(b"%0*d" % (size, number), number + (1 << 32)):
            number += 1
        latest.sorted_offsets()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert given_bytes / 2 < peak < given_bytes + 10_000  # with what is not a key, and what other threads allocate
