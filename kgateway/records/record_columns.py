"""
The fields of many records at a time, with numpy.

Only the lengths of records are read in a Python loop. From their positions on, each field of all records is one numpy
step. The positions are checked to be within the batches, the fields are not: callers check what they use.
"""

from dataclasses import dataclass, field

import numpy as np

from kgateway.records.batch import HEADER_SIZE, BatchHeader
from kgateway.records.record import malformed
from kgateway.records.varint_columns import read_varints
from kgateway.wire.errors import Malformed
from kgateway.wire.varints import read_varint

_ATTRIBUTES_SIZE = 1


@dataclass(slots=True)
class RecordBodies:
    """
    The uncompressed records of some batches: one buffer, the headers, and where the records of each batch begin and
    end.
    """

    data: bytes
    headers: list[BatchHeader] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    size: int = 0

    def add(self, header: BatchHeader, start: int, end: int) -> None:
        self.headers.append(header)
        self.starts.append(start)
        self.ends.append(end)
        self.size += end - start


@dataclass(slots=True)
class RecordColumns:
    """
    The positions of records in the buffer, and their fields as far as the key.
    """

    starts: np.ndarray  # of the lengths, with which records begin
    contents: np.ndarray  # behind the lengths
    ends: np.ndarray
    time_deltas: np.ndarray
    offset_deltas: np.ndarray
    keys: np.ndarray
    key_sizes: np.ndarray  # below 0: null
    values: np.ndarray  # where the size of the value stands


def record_columns(bodies: RecordBodies) -> RecordColumns:
    """
    Raises Malformed if the records of a batch do not end with it, and IndexError or TooLong for an impossible number.
    """
    data = np.frombuffer(bodies.data, np.uint8)
    starts = _starts(bodies)
    sizes, contents = read_varints(data, starts)
    time_deltas, at = read_varints(data, contents + _ATTRIBUTES_SIZE, bits=64)
    offset_deltas, at = read_varints(data, at)
    key_sizes, keys = read_varints(data, at)
    values = keys + np.maximum(key_sizes, 0)
    return RecordColumns(starts, contents, contents + sizes, time_deltas, offset_deltas, keys, key_sizes, values)


def _starts(bodies: RecordBodies) -> np.ndarray:
    """
    The positions of all lengths. This loop takes more than half of all the time.
    """
    data, places = bodies.data, list[int]()
    found = places.append
    for header, begin, stop in zip(bodies.headers, bodies.starts, bodies.ends, strict=True):
        at = begin
        try:
            for _ in range(header.records_count):
                found(at)
                size = data[at]
                if size < 128:
                    at += 1 + (size >> 1)
                elif (high := data[at + 1]) < 128:
                    at += 2 + ((size & 127 | high << 7) >> 1)
                else:
                    long, at = read_varint(data, at)
                    at += max(long, 0)
        except (IndexError, ValueError):
            raise damaged(header, "records", "the length of a record is cut off or too large") from None
        if at != stop:
            raise damaged(header, "records", f"{header.records_count} records do not end where the batch does")
    return np.array(places, np.int64)


def damaged(header: BatchHeader, what: str, reason: str) -> Malformed:
    return malformed(what, HEADER_SIZE, f"{reason}; its first offset is {header.base_offset}")
