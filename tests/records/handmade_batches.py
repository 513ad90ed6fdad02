"""
Records written byte by byte, and batches with any payload.
"""

from kgateway.records.batch import HEADER_SIZE, Batch
from kgateway.records.compression import Codec, compress
from kgateway.wire.varints import write_varint
from tests.records.values import batch_of, with_header


def body(offset_delta: int = 0, key: bytes | None = None, headers: list[tuple[bytes, bytes]] | None = None) -> bytes:
    """
    A handmade record in the wire format that this package must read.
    """
    data = bytearray(b"\0\0")
    write_varint(data, offset_delta)
    for blob in (key, None):
        write_varint(data, -1 if blob is None else len(blob))
        data += blob or b""
    write_varint(data, len(headers or []))
    for part in (part for header in headers or [] for part in header):
        write_varint(data, len(part))
        data += part
    length = bytearray()
    write_varint(length, len(data))
    return bytes(length + data)


def holding(payload: bytes, count: int, codec: Codec = Codec.NONE) -> Batch:
    """
    A batch with any payload.
    """
    compressed = compress(codec, payload)
    header = with_header(
        batch_of([]), records_count=count, base_timestamp=0, attributes=codec, batch_length=49 + len(compressed)
    ).header
    return Batch(header, memoryview(bytes(HEADER_SIZE) + compressed))
