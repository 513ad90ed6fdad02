"""
Columns of bytes and texts, out of a buffer in which their values lie in order with other things between them.

The values and what is between them are one column that needs no copy; Arrow's `take` of every other element copies the
values alone, in C.
"""

import numpy as np
import pyarrow as pa

BUFFER_BYTES_MAX = (1 << 31) - 1  # offsets of a column are of 32 bits


def gathered(buffer: pa.Buffer, starts: np.ndarray, sizes: np.ndarray) -> pa.Array:
    """
    The bytes that begin here and are so long, one value for each; a size below 0 is null. Nothing may overlap.
    """
    count = len(starts)
    if not count:
        return pa.array([], pa.binary())
    if buffer.size > BUFFER_BYTES_MAX:
        raise ValueError(f"a column cannot be made of a buffer of {buffer.size} bytes")
    is_null = sizes < 0
    borders = np.empty(2 * count, np.int32)
    borders[0::2] = starts
    borders[1::2] = starts + np.maximum(sizes, 0)
    both = pa.Array.from_buffers(pa.binary(), 2 * count - 1, [None, pa.py_buffer(borders), buffer])
    every_other = np.arange(0, 2 * count, 2, dtype=np.int32)
    return both.take(pa.array(every_other, mask=is_null if is_null.any() else None))


def as_text(column: pa.Array) -> pa.Array:
    """
    The bytes as texts. What is not UTF-8 becomes what Java makes of it, a mark in place of each wrong byte.
    """
    try:
        return column.cast(pa.string())
    except pa.ArrowInvalid:
        texts = [None if value is None else value.decode(errors="replace") for value in column.to_pylist()]
        return pa.array(texts, pa.string())


def repeated(text: str, count: int) -> pa.Array:
    """
    The same text in every row.
    """
    data = text.encode()
    borders = np.arange(count + 1, dtype=np.int32) * len(data)
    return pa.Array.from_buffers(pa.string(), count, [None, pa.py_buffer(borders), pa.py_buffer(data * count)])
