"""
Finds the end of a full segment from its indexes. Only its last batches are read, to see that the indexes lead there.
"""

import struct
from contextlib import closing
from pathlib import Path

from kgateway.broker.log.files.disk import Disk, File
from kgateway.broker.log.segments.index import INDEX, OFFSETS, TIME_INDEX, TIMES
from kgateway.broker.log.segments.segment import largest_timestamp
from kgateway.records.batch import HEADER_SIZE, NO_TIMESTAMP, read_header
from kgateway.wire.errors import Malformed

_BATCHES_MAX = 500  # after the last one that is indexed

Entry = tuple[int, int]


def end_by_indexes(disk: Disk, path: Path, base_offset: int, size: int) -> int | None:
    """
    The offset after the last batch of a full segment, found by its indexes; `None` if they do not lead there.
    """
    reached = _last_entry(disk, path.with_suffix(INDEX), OFFSETS)
    latest = _last_entry(disk, path.with_suffix(TIME_INDEX), TIMES)
    if reached is None or latest is None:
        return None
    with closing(disk.open(path)) as file:
        try:
            return _walk_from_last_entry(file, size, base_offset, reached, max(latest[0], NO_TIMESTAMP))
        except Malformed:
            return None


def _last_entry(disk: Disk, path: Path, entry: struct.Struct) -> Entry | None:
    with closing(disk.open(path)) as file:
        if not file.size:
            return 0, 0
        if file.size % entry.size:
            return None
        first, second = entry.unpack(file.read(file.size - entry.size, entry.size))
        return first, second


def _walk_from_last_entry(file: File, size: int, base_offset: int, reached: Entry, latest: int) -> int | None:
    last_offset, position = reached
    if not 0 <= position < size:
        return None
    expected = base_offset + last_offset if position else None
    for _ in range(_BATCHES_MAX):
        header = read_header(file.read(position, HEADER_SIZE))
        if largest_timestamp(header) > latest or expected not in (None, header.last_offset):
            return None
        expected, position = None, position + header.size
        if position >= size:
            return header.last_offset + 1 if position == size else None
    return None
