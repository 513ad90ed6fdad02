"""
Columns without their nulls, and back.
"""

from collections.abc import Callable

import numpy as np
import pyarrow as pa


def where_there(column: pa.Array, decode: Callable[[pa.Array], pa.Array]) -> pa.Array:
    """
    What comes out of the values that are there; null stays null.
    """
    if not column.null_count:
        return decode(column)
    is_there = column.is_valid().to_numpy(zero_copy_only=False)
    return spread(decode(column.drop_null()), is_there)


def spread(values: pa.Array, is_there: np.ndarray) -> pa.Array:
    """
    The values at the rows that have one, with nulls at the others.
    """
    places = np.cumsum(is_there, dtype=np.int64) - 1
    return values.take(pa.array(np.maximum(places, 0), mask=~is_there))
