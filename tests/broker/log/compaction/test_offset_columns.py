"""
The last offset of each key in columns, in bounded memory.
"""

import tracemalloc
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgateway.broker.log.compaction import offset_columns
from kgateway.broker.log.compaction.key_hash import PADDING, KeyHash
from kgateway.broker.log.compaction.offset_columns import KEY_BYTES, OffsetColumns, Unfit

_ROOMY = 1 << 20
_KEYS = st.binary(max_size=2) | st.sampled_from(
    [b"k" * size for size in (7, 8, 9, 15, 16, 17, 127, 128, 129, 400)] + [b"k\0", b"k\0\0", b"\0" * 8]
)


def laid(keys: Sequence[bytes]) -> tuple[bytes, np.ndarray, np.ndarray]:
    """
    The keys behind each other, as in a buffer of records, with their positions and sizes.
    """
    sizes = np.array([len(key) for key in keys], np.int64)
    return b"".join((*keys, PADDING)), np.cumsum(sizes) - sizes, sizes


def note(latest: OffsetColumns, keys: Sequence[bytes], first: int = 0) -> int | None:
    return latest.note(*laid(keys), np.arange(first, first + len(keys)))


@given(st.lists(st.lists(_KEYS, max_size=10), max_size=4), st.sampled_from([1, 3, _ROOMY]))
def test_like_a_dictionary(groups: list[list[bytes]], merged_at_once: int) -> None:
    """
    A record is the latest of its key if no later one was noted, whatever the length of the key.
    """
    latest, expected, offset = OffsetColumns(_ROOMY, merged_at_once), dict[bytes, int](), 0
    for keys in groups:
        assert note(latest, keys, offset) is None
        expected.update(zip(keys, range(offset, offset + len(keys)), strict=True))
        offset += len(keys)
    assert latest.merge() is None
    assert len(latest) == len(expected)
    assert latest.sorted_offsets().tolist() == sorted(expected.values())
    for key, last in expected.items():
        assert latest.is_latest(key, last)
        assert not latest.is_latest(key, last - 1)
    assert latest.is_latest(b"another", 0)


@given(st.lists(st.lists(_KEYS, max_size=10), max_size=4), st.integers(1, 6), st.sampled_from([1, 3, _ROOMY]))
def test_memory_is_full(groups: list[list[bytes]], room: int, merged_at_once: int) -> None:
    """
    The first record whose key has no room is told, and nothing from it on is noted.
    """
    latest, expected, full_at = OffsetColumns(room * KEY_BYTES, merged_at_once), dict[bytes, int](), None
    for offset, key in enumerate(key for keys in groups for key in keys):
        if len(expected) == room and key not in expected:
            full_at = offset
            break
        expected[key] = offset
    found, first = None, 0
    for keys in groups:
        found = note(latest, keys, first) if found is None else found
        first += len(keys)
    assert (latest.merge() if found is None else found) == full_at
    assert latest.sorted_offsets().tolist() == sorted(expected.values())


def test_there_is_room_for_one() -> None:
    """
    However little memory there is, a round advances by one key. Nor is more collected than there is room for.
    """
    assert note(OffsetColumns(0), [b"a", b"b"]) == 1


class HalfHash:
    """
    Hashes whose first halves are all the same.
    """

    def of(self, data: bytes, keys: np.ndarray, sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        _, second = KeyHash.of(self._whole, data, keys, sizes)
        return np.zeros(len(keys), np.uint64), second

    _whole = KeyHash()


def test_two_keys_with_half_a_hash(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    They do not fit into columns, whether they are merged together or one after the other; the key that is there is
    still told from one that is not.
    """
    monkeypatch.setattr(offset_columns, "KeyHash", HalfHash)
    latest = OffsetColumns(_ROOMY)
    note(latest, [b"a", b"a"])
    assert latest.merge() is None
    assert not latest.is_latest(b"a", 0)
    assert latest.is_latest(b"b", 0)
    note(latest, [b"b"])
    with pytest.raises(Unfit):
        latest.merge()
    note(latest, [b"c", b"d"])
    with pytest.raises(Unfit):
        latest.merge()


@pytest.mark.parametrize("size", [10, 300])
def test_memory_is_what_was_given(size: int) -> None:
    """
    All keys that fit take no more than the given memory, whatever their length.
    """
    given_bytes, at_once = 8_000_000, 1_000
    tracemalloc.start()
    try:
        latest, first = OffsetColumns(given_bytes, at_once), 0
        while note(latest, [b"%0*d" % (size, number) for number in range(first, first + at_once)], first) is None:
            first += at_once
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert given_bytes / 2 < peak < given_bytes
