"""
The last offset of each key, in sorted columns of numpy instead of a dictionary.

A key is known by the 128 bits of its hash (key_hash.py). The columns are sorted by the first half of the hashes, and
two keys with the same first half do not fit into them. Among a million keys there are two such with a probability of
1 : 36,000,000.

A merge copies the columns, so many records are collected before it.
"""

import numpy as np

from kgateway.broker.log.compaction.key_hash import PADDING, KeyHash
from kgateway.cluster.partition import EARLIEST_OFFSET

KEY_BYTES = 40  # measured: three numbers, and one more while a column is copied
_MERGED_AT_ONCE = 1 << 18  # records


class Unfit(Exception):
    """
    These records cannot be read in columns, only one by one.
    """


class OffsetColumns:
    """
    Records have to be noted in the order of their offsets.
    """

    def __init__(self, memory_bytes: int, merged_at_once: int = _MERGED_AT_ONCE) -> None:
        self._room = max(1, memory_bytes // KEY_BYTES)  # otherwise no round would make progress
        self._merged_at_once = min(merged_at_once, self._room)
        self._hash = KeyHash()
        self._hashes = np.empty(0, np.uint64)  # the first half of each hash, in order
        self._checks = np.empty(0, np.uint64)  # the second half
        self._offsets = np.empty(0, np.int64)
        self._noted: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
        self._noted_count = 0
        self.end = EARLIEST_OFFSET  # later keys are not known

    def __len__(self) -> int:
        return len(self._hashes)

    def note(self, data: bytes, keys: np.ndarray, sizes: np.ndarray, offsets: np.ndarray) -> int | None:
        """
        Remember records with keys at these positions; `data` ends with PADDING. Returns the offset of the first record
        without room, once that is known.
        """
        self._collect(*self._hash.of(data, keys, sizes), offsets)
        return self.merge() if self._noted_count >= self._merged_at_once else None

    def _collect(self, hashes: np.ndarray, checks: np.ndarray, offsets: np.ndarray) -> None:
        self._noted.append((hashes, checks, offsets))
        self._noted_count += len(offsets)

    def merge(self) -> int | None:
        """
        Merge what was noted. Returns the offset of the first record without room.
        """
        if not self._noted_count:
            return None
        hashes, checks, offsets = (np.concatenate(columns) for columns in zip(*self._noted, strict=True))
        self._noted, self._noted_count = [], 0
        order = np.argsort(hashes)
        found, firsts = _distinct(hashes[order])
        all_checks, all_offsets = checks[order], offsets[order]
        found_checks = all_checks[firsts]
        places, has_half = self._places(found)
        if (all_checks != np.repeat(found_checks, np.diff(firsts, append=len(order)))).any() or (
            self._checks[places[has_half]] != found_checks[has_half]
        ).any():
            raise Unfit("two keys have the same first half of their hashes")
        new, room = np.flatnonzero(~has_half), self._room - len(self)
        if len(new) > room:
            full_at = np.sort(np.minimum.reduceat(all_offsets, firsts)[new])[room]
            fitting = offsets < full_at
            self._collect(hashes[fitting], checks[fitting], offsets[fitting])
            self.merge()
            return int(full_at)
        last = np.maximum.reduceat(all_offsets, firsts)
        self._offsets[places[has_half]] = last[has_half]
        self._hashes = np.insert(self._hashes, places[new], found[new])
        self._checks = np.insert(self._checks, places[new], found_checks[new])
        self._offsets = np.insert(self._offsets, places[new], last[new])
        return None

    def is_latest(self, key: bytes, offset: int) -> bool:
        [found] = self.latest_of(key + PADDING, np.zeros(1, np.int64), np.array([len(key)]))
        return bool(found <= offset)

    def latest_of(self, data: bytes, keys: np.ndarray, sizes: np.ndarray) -> np.ndarray:
        """
        The last offsets of the keys at these positions, EARLIEST_OFFSET for one that is not known.
        """
        hashes, checks = self._hash.of(data, keys, sizes)
        order = np.argsort(hashes)  # a search for sorted numbers stays in the processor's cache
        places, has_half = self._places(hashes[order])
        rows, places = order[has_half], places[has_half]
        found = np.full(len(hashes), EARLIEST_OFFSET, np.int64)
        found[rows] = np.where(self._checks[places] == checks[rows], self._offsets[places], EARLIEST_OFFSET)
        return found

    def sorted_offsets(self) -> np.ndarray:
        return np.sort(self._offsets)

    def _places(self, hashes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """
        Where these first halves are in the column, or would be, and whether they are.
        """
        places = np.searchsorted(self._hashes, hashes)
        is_there = places < len(self)
        is_there[is_there] = self._hashes[places[is_there]] == hashes[is_there]
        return places, is_there


def _distinct(hashes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """
    The different ones of sorted numbers, and the first row of each.
    """
    is_first = np.ones(len(hashes), bool)
    np.not_equal(hashes[1:], hashes[:-1], out=is_first[1:])
    firsts = np.flatnonzero(is_first)
    return hashes[firsts], firsts
