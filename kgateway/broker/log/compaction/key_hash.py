"""
Hashes of many keys at a time, with numpy.

A hash has 128 bits. It is made of four multilinear functions (Lemire and Kaser, "Strongly universal string hashing is
fast", 2014), whose factors are drawn anew for each round. Any two keys have the same hash with a probability of
2**-128, and nobody who chooses keys knows the factors. Keys of more than 128 bytes are replaced by a digest first.
"""

import os
from hashlib import blake2b

import numpy as np

_LANES = 4  # of 32 bits
_WORD_BYTES = 8
_WORDS = 16
_DIGEST_BYTES = 32
PADDING = bytes(_WORD_BYTES)  # behind the keys in a buffer, because whole words are read
_LOW = np.uint64(0xFFFFFFFF)
_MASKS = np.array([(1 << 8 * size) - 1 for size in range(_WORD_BYTES + 1)], np.uint64)  # by the bytes that are left


class KeyHash:
    def __init__(self) -> None:
        count = 2 + 2 * _WORDS  # a constant, that of the size, and those of half words
        self._factors = np.frombuffer(os.urandom(_LANES * count * 8), np.uint64).reshape(_LANES, count)

    def of(self, data: bytes, keys: np.ndarray, sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """
        Two columns of 64 bits, for keys at these positions. `data` ends with the padding.
        """
        long = np.flatnonzero(sizes > _WORDS * _WORD_BYTES)
        if long.size:
            data, keys, sizes = _digested(data, keys, sizes, long)
        sums = [factors[0] + factors[1] * sizes.astype(np.uint64) for factors in self._factors]
        words = np.ndarray(len(data) - _WORD_BYTES + 1, "V8", data, strides=(1,))  # one begins at each byte
        for number in range(_WORDS):
            rows = np.flatnonzero(sizes > number * _WORD_BYTES)
            if not rows.size:
                break
            left = np.minimum(sizes[rows] - number * _WORD_BYTES, _WORD_BYTES)
            word = words[keys[rows] + number * _WORD_BYTES].view("<u8") & _MASKS[left]
            low, high = word & _LOW, word >> 32
            for lane, factors in zip(sums, self._factors, strict=True):
                lane[rows] += factors[2 + 2 * number] * low + factors[3 + 2 * number] * high
        first, second, third, fourth = (lane >> 32 for lane in sums)
        return first << 32 | second, third << 32 | fourth


def _digested(
    data: bytes, keys: np.ndarray, sizes: np.ndarray, long: np.ndarray
) -> tuple[bytes, np.ndarray, np.ndarray]:
    """
    The same keys, but the digests of some.
    """
    spans = zip(keys[long].tolist(), sizes[long].tolist(), strict=True)
    digests = [blake2b(data[start : start + size], digest_size=_DIGEST_BYTES).digest() for start, size in spans]
    end = len(data) - len(PADDING)
    keys, sizes = keys.copy(), sizes.copy()
    keys[long], sizes[long] = end + _DIGEST_BYTES * np.arange(len(long)), _DIGEST_BYTES
    return b"".join((data[:end], *digests, PADDING)), keys, sizes
