"""
The uncompressed records of batches, those of many batches in one buffer, with checked CRCs.

Decoding is fast where there is much of it at a time; groups of limited size bound the memory.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import groupby

import pyarrow as pa

from kgateway.records.batch import CODEC_BITS, HEADER_SIZE, Batch, BatchHeader, crc_holds
from kgateway.records.compression import decompress
from kgateway.records.record import RECORDS_BYTES_MAX
from kgateway.records.record_columns import RecordBodies, damaged

DECODED_BYTES = 2 << 20  # of records, uncompressed, that are decoded together


def record_bodies(
    found: Iterable[Batch], is_wanted: Callable[[BatchHeader], bool], size: int = DECODED_BYTES
) -> Iterator[RecordBodies]:
    """
    The records of the wanted batches, in groups of about this many bytes.
    """
    wanted = (batch for batch in found if is_wanted(batch.header) and batch.header.records_count)
    for is_plain, run in groupby(wanted, _is_plain):
        made = _plain if is_plain else _unpacked
        yield from made(run, size)


def _is_plain(batch: Batch) -> bool:
    """
    Whether the records are not compressed. Checks the CRC first.
    """
    if not crc_holds(batch):
        raise damaged(batch.header, "crc", "the CRC of the batch does not match its contents")
    return not batch.header.attributes & CODEC_BITS


def _plain(found: Iterable[Batch], size: int) -> Iterator[RecordBodies]:
    """
    Group batches that are not compressed, without a copy.
    """
    group: RecordBodies | None = None
    for batch in found:
        data, start = _within(batch.data)
        if group and (data is not group.data or group.size >= size):
            yield group
            group = None
        group = group or RecordBodies(data)
        group.add(batch.header, start + HEADER_SIZE, start + len(batch.data))
    if group:
        yield group


def _within(view: memoryview) -> tuple[bytes, int]:
    """
    The `bytes` object behind a view, and the view's position in it: the loop over records is fast with `bytes` only.
    """
    if not isinstance(view.obj, bytes):
        return view.tobytes(), 0
    return view.obj, pa.py_buffer(view).address - pa.py_buffer(view.obj).address


def _unpacked(found: Iterable[Batch], size: int) -> Iterator[RecordBodies]:
    group, parts = RecordBodies(b""), list[bytes]()
    for batch in found:
        part = _decompressed(batch)
        parts.append(part)
        group.add(batch.header, group.size, group.size + len(part))
        if group.size >= size:
            group.data = b"".join(parts)
            yield group
            group, parts = RecordBodies(b""), []
    if parts:
        group.data = b"".join(parts)
        yield group


def _decompressed(batch: Batch) -> bytes:
    try:
        return decompress(batch.header.codec, batch.data[HEADER_SIZE:], RECORDS_BYTES_MAX)
    except ValueError as failure:
        raise damaged(batch.header, "records", str(failure)) from None
