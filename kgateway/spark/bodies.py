"""
What stands between batches, from a file or a server, and the decoder of records: which batches are wanted, that they
are what was written, and their records uncompressed, those of many batches in one buffer.

Decoding pays when there is much of it at a time, and memory is bounded by giving it no more than that.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby

import pyarrow as pa

from kgateway.records.batch import CODEC_BITS, HEADER_SIZE, Batch, BatchHeader, crc_holds
from kgateway.records.compression import decompress
from kgateway.records.payload import RECORDS_BYTES_MAX, malformed
from kgateway.wire.malformed import Malformed

DECODED_BYTES = 2 << 20  # of records, uncompressed, that are decoded together


@dataclass(slots=True)
class Bodies:
    """
    The records of some batches: one buffer, the headers, and where in the buffer the records of each begin and end.
    """

    data: bytes
    headers: list[BatchHeader] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    size: int = 0

    def add(self, header: BatchHeader, start: int, end: int) -> None:
        """
        The records of another batch.
        """
        self.headers.append(header)
        self.starts.append(start)
        self.ends.append(end)
        self.size += end - start


def bodies(
    found: Iterable[Batch], is_wanted: Callable[[BatchHeader], bool], size: int = DECODED_BYTES
) -> Iterator[Bodies]:
    """
    The records of those of the batches that are wanted, in groups of about this many bytes.
    """
    wanted = (batch for batch in found if is_wanted(batch.header) and batch.header.records_count)
    for is_plain, run in groupby(wanted, _is_plain):
        made = _plain if is_plain else _unpacked
        yield from made(run, size)


def _is_plain(batch: Batch) -> bool:
    """
    Whether the records are not compressed, once it is sure that the batch is what was written.
    """
    if not crc_holds(batch):
        raise damaged(batch.header, "crc", "the CRC of the batch is not that of its bytes")
    return not batch.header.attributes & CODEC_BITS


def _plain(found: Iterable[Batch], size: int) -> Iterator[Bodies]:
    """
    Those that are not compressed stay where they are.
    """
    group: Bodies | None = None
    for batch in found:
        data, start = _within(batch.data)
        if group and (data is not group.data or group.size >= size):
            yield group
            group = None
        group = group or Bodies(data)
        group.add(batch.header, start + HEADER_SIZE, start + len(batch.data))
    if group:
        yield group


def _within(view: memoryview) -> tuple[bytes, int]:
    """
    The bytes that this is a view of, and where in them it begins. They are walked, which is fast in `bytes` alone.
    """
    if not isinstance(view.obj, bytes):
        return view.tobytes(), 0
    return view.obj, pa.py_buffer(view).address - pa.py_buffer(view.obj).address


def _unpacked(found: Iterable[Batch], size: int) -> Iterator[Bodies]:
    """
    What comes out of compressed ones is put together.
    """
    group, parts = Bodies(b""), list[bytes]()
    for batch in found:
        part = _decompressed(batch)
        parts.append(part)
        group.add(batch.header, group.size, group.size + len(part))
        if group.size >= size:
            group.data = b"".join(parts)
            yield group
            group, parts = Bodies(b""), []
    if parts:
        group.data = b"".join(parts)
        yield group


def _decompressed(batch: Batch) -> bytes:
    try:
        return decompress(batch.header.codec, batch.data[HEADER_SIZE:], RECORDS_BYTES_MAX)
    except ValueError as failure:
        raise damaged(batch.header, "records", str(failure)) from None


def damaged(header: BatchHeader, what: str, reason: str) -> Malformed:
    """
    What is said of a batch that cannot be read.
    """
    return malformed(what, HEADER_SIZE, f"{reason}; its first offset is {header.base_offset}")
