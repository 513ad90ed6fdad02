"""
Records to columns, many at a time.

`kgateway.records.record_columns` finds the fields, and Arrow copies keys and values. Nothing is trusted: a record has
to end where its length says, and so must its contents.
"""

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from kgateway.records.batch import TimestampType
from kgateway.records.record_columns import RecordBodies, damaged, record_columns
from kgateway.records.varint_columns import TooLong, read_varints
from kgateway.spark.decoders.arrays import as_text, gather
from kgateway.spark.decoders.columns import HEADER, HEADERS, TYPES

_US = 1_000  # in a millisecond
_MS_MAX = (1 << 63) // _US  # microseconds overflow from here on


@dataclass(slots=True)
class Layout:
    """
    The positions of each record's parts in the buffer.
    """

    offsets: np.ndarray
    timestamps: np.ndarray
    timestamp_types: np.ndarray
    keys: np.ndarray
    key_sizes: np.ndarray
    values: np.ndarray
    value_sizes: np.ndarray
    headers: np.ndarray  # where they begin
    header_counts: np.ndarray
    ends: np.ndarray


def columns_of(group: RecordBodies, names: Collection[str], first: int, end: int) -> dict[str, pa.Array]:
    """
    Those of these columns that vary within a partition, for the records in a range of offsets.
    """
    data, buffer = np.frombuffer(group.data, np.uint8), pa.py_buffer(group.data)
    try:
        layout = _layout(data, group)
        headers = _header_spans(data, layout)
    except (IndexError, TooLong) as failure:
        raise damaged(group.headers[0], "records", f"a record is not what it declares: {failure}") from None
    columns = {
        "offset": lambda: pa.array(layout.offsets),
        "timestamp": lambda: _times(layout.timestamps),
        "timestampType": lambda: pa.array(layout.timestamp_types),
        "key": lambda: gather(buffer, layout.keys, layout.key_sizes),
        "value": lambda: gather(buffer, layout.values, layout.value_sizes),
        HEADERS: lambda: headers.column(buffer),
    }
    rows = {name: columns[name]() for name in names if name in columns}
    return _cut(rows, layout.offsets, first, end)


def _cut(rows: dict[str, pa.Array], offsets: np.ndarray, first: int, end: int) -> dict[str, pa.Array]:
    """
    Drop records outside the range: a batch may begin before it and end behind it.
    """
    inside = (offsets >= first) & (offsets < end)
    if inside.all():
        return rows
    wanted = pa.array(np.flatnonzero(inside))
    return {name: column.take(wanted) for name, column in rows.items()}


def _layout(data: np.ndarray, group: RecordBodies) -> Layout:
    found = record_columns(group)
    counts = [header.records_count for header in group.headers]
    value_sizes, values = read_varints(data, found.values)
    header_counts, headers = read_varints(data, values + np.maximum(value_sizes, 0))
    timestamps, types = _stamps(group, counts, found.time_deltas)
    bases = np.repeat(np.array([header.base_offset for header in group.headers], np.int64), counts)
    offsets = bases + found.offset_deltas
    keys, key_sizes, ends = found.keys, found.key_sizes, found.ends
    return Layout(offsets, timestamps, types, keys, key_sizes, values, value_sizes, headers, header_counts, ends)


def _stamps(group: RecordBodies, counts: list[int], deltas: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """
    The timestamps and their types: with LogAppendTime a batch has one for all its records.
    """
    heads = group.headers
    types = np.repeat(np.array([header.timestamp_type for header in heads], np.int32), counts)
    stamps = np.repeat(np.array([header.base_timestamp for header in heads], np.int64), counts) + deltas
    appended = types == TimestampType.LOG_APPEND_TIME
    if appended.any():
        largest = np.repeat(np.array([header.max_timestamp for header in heads], np.int64), counts)
        stamps = np.where(appended, largest, stamps)
    return stamps, types


def _times(stamps: np.ndarray) -> pa.Array:
    """
    Milliseconds as Spark's timestamps; null where they are out of range.
    """
    beyond = (stamps >= _MS_MAX) | (stamps <= -_MS_MAX)
    us = np.where(beyond, 0, stamps) * _US
    return pa.array(us, mask=beyond if beyond.any() else None).cast(TYPES["timestamp"])


@dataclass(slots=True)
class HeaderSpans:
    """
    The positions of all headers, and the number of each record's headers.
    """

    counts: np.ndarray
    keys: np.ndarray
    key_sizes: np.ndarray
    values: np.ndarray
    value_sizes: np.ndarray

    def column(self, buffer: pa.Buffer) -> pa.Array:
        """
        The lists of headers; null where a record has none, as in Spark's own source.
        """
        borders = np.zeros(len(self.counts) + 1, np.int32)
        np.cumsum(self.counts, out=borders[1:])
        inside = pa.StructArray.from_arrays(
            [as_text(gather(buffer, self.keys, self.key_sizes)), gather(buffer, self.values, self.value_sizes)],
            fields=list(HEADER),
        )
        is_there = pa.array(self.counts > 0)
        validity = is_there.buffers()[1]
        return pa.ListArray.from_buffers(
            TYPES[HEADERS], len(self.counts), [validity, pa.py_buffer(borders)], children=[inside]
        )


def _header_spans(data: np.ndarray, layout: Layout) -> HeaderSpans:
    """
    Read headers in rounds: the first one of each record that has one, then the second. Every record has to end behind
    its last header.
    """
    counts, at = layout.header_counts, layout.headers
    if counts.size and counts.min() < 0:
        raise IndexError("a record declares a negative number of headers")
    if (counts > (layout.ends - at) // 2).any():
        raise IndexError("a record declares more headers than fit")
    firsts = np.cumsum(counts) - counts
    total = int(counts.sum())
    spans = HeaderSpans(counts, *(np.empty(total, np.int64) for _ in range(4)))
    rows, number = np.flatnonzero(counts), 0
    at = at.copy()
    while rows.size:
        here = firsts[rows] + number
        sizes, keys = read_varints(data, at[rows])
        if sizes.min() < 0:
            raise IndexError("the key of a header is null")
        spans.key_sizes[here], spans.keys[here] = sizes, keys
        sizes, values = read_varints(data, keys + sizes)
        spans.value_sizes[here], spans.values[here] = sizes, values
        at[rows] = values + np.maximum(sizes, 0)
        number += 1
        rows = rows[counts[rows] > number]
    if not np.array_equal(at, layout.ends):
        raise IndexError("a record is longer or shorter than its content")
    return spans
