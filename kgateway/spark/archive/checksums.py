"""
A checksum of records that does not depend on their division into batches: the CRC32C of each column's bytes and
lengths, and of all these the CRC32C. No step is per record.
"""

from struct import pack

import crc32c
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_FIXED = ("offset", "timestamp", "timestampType")
_NULL = -1  # as a length


class Checksum:
    def __init__(self) -> None:
        self.count = 0
        self.bytes = 0  # of keys, values and headers
        self._streams: dict[str, int] = {}

    def add(self, rows: pa.RecordBatch) -> None:
        """
        Add the next records.
        """
        if not rows.num_rows:
            return
        self.count += rows.num_rows
        for name in _FIXED:
            self._feed(name, _numbers(rows.column(name)))
        for name in ("key", "value"):
            self._add_binary(name, rows.column(name))
        headers = rows.column("headers")
        inside = headers.flatten()  # of the records that have headers
        self._feed("headers", _lengths(headers))
        for place, name in enumerate(("header keys", "header values")):
            self._add_binary(name, inside.field(place))

    @property
    def text(self) -> str:
        parts = [self._streams.get(name, 0) for name in sorted(self._streams)]
        return f"{crc32c.crc32c(pack(f'<q{len(parts)}I', self.count, *parts)):08x}"

    def _add_binary(self, name: str, column: pa.Array) -> None:
        self._feed(f"{name}: lengths", _lengths(column))
        data = _data(column)
        self.bytes += len(data)
        self._feed(name, data)

    def _feed(self, name: str, data: memoryview | np.ndarray) -> None:
        self._streams[name] = crc32c.crc32c(data, self._streams.get(name, 0))


def _numbers(column: pa.Array) -> np.ndarray:
    plain = column.cast(pa.int64())
    if plain.null_count:
        plain = pc.fill_null(plain, np.iinfo(np.int64).min)
    return np.ascontiguousarray(plain.to_numpy(zero_copy_only=False))


def _borders(column: pa.Array) -> np.ndarray:
    buffer = column.buffers()[1]
    if buffer is None or not len(column):
        return np.zeros(1, np.int32)
    return np.frombuffer(buffer, np.int32)[column.offset : column.offset + len(column) + 1]


def _lengths(column: pa.Array) -> np.ndarray:
    lengths = np.diff(_borders(column))
    if column.null_count:
        lengths[column.is_null().to_numpy(zero_copy_only=False)] = _NULL
    return np.ascontiguousarray(lengths, np.int32)


def _data(column: pa.Array) -> memoryview:
    if column.null_count:  # nulls may have bytes
        column = pc.drop_null(column)
    borders, data = _borders(column), column.buffers()[2]
    return memoryview(data)[borders[0] : borders[-1]] if data is not None else memoryview(b"")
