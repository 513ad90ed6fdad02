"""
Numbers of variable length, many at a time: one vector of positions in, one of values and one of the positions behind
them out. `kgateway.wire.varints` has the form.
"""

import numpy as np


class TooLong(ValueError):
    """
    A number goes on beyond the bits it may have.
    """


def read_uvarints(data: np.ndarray, at: np.ndarray, bits: int) -> tuple[np.ndarray, np.ndarray]:
    """
    Unsigned numbers. An IndexError where the bytes end before a number does.
    """
    first = data[at]
    values, after = (first & 127).astype(np.uint64), at + 1
    longer, shift = np.flatnonzero(first > 127), 7
    while longer.size:
        if shift >= bits:
            raise TooLong(f"a variable-length number goes on beyond {bits} bits")
        byte = data[after[longer]]
        after[longer] += 1
        part = (byte & 127).astype(np.uint64)
        if shift + 7 > bits and (part >> (bits - shift)).any():
            raise TooLong(f"a variable-length number is larger than {bits} bits")
        values[longer] |= part << shift
        longer, shift = longer[byte > 127], shift + 7
    return values, after


def read_varints(data: np.ndarray, at: np.ndarray, bits: int = 32) -> tuple[np.ndarray, np.ndarray]:
    """
    Signed numbers, zigzagged.
    """
    values, after = read_uvarints(data, at, bits)
    return ((values >> 1) ^ -(values & 1)).view(np.int64), after
