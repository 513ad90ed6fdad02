"""
Numbers of variable length, read many at a time with numpy: from a vector of positions to one of values and one of the
positions behind them. `kgateway.wire.varints` has the format.

numpy is an optional dependency. Only the Spark data source and the process that compacts import this module.
"""

import numpy as np


class TooLong(ValueError):
    """
    A varint with too many bits.
    """


def read_uvarints(data: np.ndarray, at: np.ndarray, bits: int) -> tuple[np.ndarray, np.ndarray]:
    """
    Read unsigned varints; IndexError if the bytes end within one.
    """
    first = data[at]
    values, after = (first & 127).astype(np.uint64), at + 1
    longer, shift = np.flatnonzero(first > 127), 7
    while longer.size:
        if shift >= bits:
            raise TooLong(f"a variable-length number extends beyond {bits} bits")
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
    Read zigzag varints.
    """
    values, after = read_uvarints(data, at, bits)
    return ((values >> 1) ^ -(values & 1)).view(np.int64), after
