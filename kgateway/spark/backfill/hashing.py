"""
The partitions of a whole column of keys: what `kgateway.client.partitioning` decides of one.

The hash takes a key word by word, and here a step is one word of all keys that have it, so keys of some length cost
little more than short ones.
"""

import numpy as np
import pyarrow as pa

_SEED, _FACTOR, _SHIFT = 0x9747B28C, np.uint32(0x5BD1E995), np.uint32(24)
_POSITIVE = np.uint32(0x7FFFFFFF)
_WORD = 4


def partitions_of(keys: pa.Array, partitions: int) -> np.ndarray:
    """
    Of each key its partition; of null that of an empty key.
    """
    keys = keys.cast(pa.large_binary()).fill_null(b"")
    return ((_hashes(keys) & _POSITIVE) % np.uint32(partitions)).astype(np.int32)


def _hashes(keys: pa.Array) -> np.ndarray:
    starts, lengths, data = _spans(keys)
    hashed = np.uint32(_SEED) ^ lengths.astype(np.uint32)
    whole = lengths // _WORD
    for word in range(int(whole.max(initial=0))):
        longer = np.flatnonzero(whole > word)
        mixed = _words(data, starts[longer] + _WORD * word) * _FACTOR
        mixed = (mixed ^ (mixed >> _SHIFT)) * _FACTOR
        hashed[longer] = (hashed[longer] * _FACTOR) ^ mixed
    rest = np.flatnonzero(lengths % _WORD)
    kept = np.uint32(8) * (lengths[rest] % _WORD).astype(np.uint32)
    last = _words(data, starts[rest] + _WORD * whole[rest]) & ((np.uint32(1) << kept) - np.uint32(1))
    hashed[rest] = (hashed[rest] ^ last) * _FACTOR
    hashed = (hashed ^ (hashed >> np.uint32(13))) * _FACTOR
    return hashed ^ (hashed >> np.uint32(15))


def _spans(keys: pa.Array) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """
    Where each key begins and how long it is, and the bytes of all, with some behind: a word can be read anywhere.
    """
    _, offsets, data = keys.buffers()
    bounds = np.frombuffer(offsets, np.int64)[keys.offset : keys.offset + len(keys) + 1]
    first, last = (int(bounds[0]), int(bounds[-1])) if len(keys) else (0, 0)
    held = np.frombuffer(data, np.uint8)[first:last] if data is not None and last > first else np.empty(0, np.uint8)
    starts = bounds[:-1] - first
    return starts, np.diff(bounds), np.concatenate([held, np.zeros(_WORD, np.uint8)])


def _words(data: np.ndarray, places: np.ndarray) -> np.ndarray:
    words = np.zeros(len(places), np.uint32)
    for byte in range(_WORD):
        words |= data[places + byte].astype(np.uint32) << np.uint32(8 * byte)
    return words
