"""
Vectorized steps of the decoders, with numpy and Arrow.

Values are gathered out of a buffer in which they lie in order with other things between them. Values and gaps are one
column that needs no copy; Arrow's `take` of every other element copies the values alone, in C.
"""

from collections.abc import Callable

import numpy as np
import pyarrow as pa

BUFFER_BYTES_MAX = (1 << 31) - 1  # offsets of a column are of 32 bits


def gather(buffer: pa.Buffer, starts: np.ndarray, sizes: np.ndarray) -> pa.Array:
    """
    The bytes at these starts with these sizes; a size below 0 is null. Values must not overlap.
    """
    count = len(starts)
    if not count:
        return pa.array([], pa.binary())
    if buffer.size > BUFFER_BYTES_MAX:
        raise ValueError(f"a column cannot be built from a buffer of {buffer.size} bytes")
    is_null = sizes < 0
    borders = np.empty(2 * count, np.int32)
    borders[0::2] = starts
    borders[1::2] = starts + np.maximum(sizes, 0)
    both = pa.Array.from_buffers(pa.binary(), 2 * count - 1, [None, pa.py_buffer(borders), buffer])
    every_other = np.arange(0, 2 * count, 2, dtype=np.int32)
    return both.take(pa.array(every_other, mask=is_null if is_null.any() else None))


def as_text(column: pa.Array) -> pa.Array:
    """
    Bytes as text. Each byte that is not UTF-8 becomes a replacement character, as in Java.
    """
    try:
        return column.cast(pa.string())
    except pa.ArrowInvalid:
        texts = [None if value is None else value.decode(errors="replace") for value in column.to_pylist()]
        return pa.array(texts, pa.string())


def repeated(text: str, count: int) -> pa.Array:
    data = text.encode()
    borders = np.arange(count + 1, dtype=np.int32) * len(data)
    return pa.Array.from_buffers(pa.string(), count, [None, pa.py_buffer(borders), pa.py_buffer(data * count)])


def where_there(column: pa.Array, decode: Callable[[pa.Array], pa.Array]) -> pa.Array:
    """
    Decode the values that are not null; null stays null.
    """
    if not column.null_count:
        return decode(column)
    is_there = column.is_valid().to_numpy(zero_copy_only=False)
    return spread(decode(column.drop_null()), is_there)


def spread(values: pa.Array, is_there: np.ndarray) -> pa.Array:
    """
    The values at the rows that have one, and nulls at the others.
    """
    places = np.cumsum(is_there, dtype=np.int64) - 1
    return values.take(pa.array(np.maximum(places, 0), mask=~is_there))
