"""
The records inside a batch.

On the wire a record is its length and a `RecordBody`, whose offset and timestamp count from those of the batch.
`records` yields records with their own. `entries` finds where they stand, with the key of each: all that compaction and
the check of keys need to know of millions of records.

Header keys are text to Kafka, which does not check it. Here they become `str` with the error handler `surrogateescape`,
as file names do in Python: broken UTF-8 comes out again byte for byte.
"""

from collections.abc import Iterator
from typing import NamedTuple

from kgateway.records.batch import HEADER_SIZE, MAGIC, Batch, TimestampType
from kgateway.records.compression import Codec, decompress
from kgateway.wire.codec import decoder
from kgateway.wire.errors import Malformed, MessageField
from kgateway.wire.schema import Message, Struct, v
from kgateway.wire.types import i8, varint, varlong
from kgateway.wire.varints import more_uvarint, read_varint

RECORDS_BYTES_MAX = 128 << 20  # decompressed, by default


class Payload(NamedTuple):
    """
    The uncompressed records of a batch as bytes, and the position of the first.
    """

    data: bytes
    start: int


def payload_of(batch: Batch, limit: int = RECORDS_BYTES_MAX) -> Payload:
    """
    The records of a batch, if they decompress to at most `limit` bytes.
    """
    compressed = batch.data[HEADER_SIZE:]
    try:
        codec = batch.header.codec
        if codec is Codec.NONE or not compressed:
            return Payload(bytes(batch.data), HEADER_SIZE)
        return Payload(decompress(codec, compressed, limit), 0)
    except ValueError as failure:
        raise malformed("records", HEADER_SIZE, str(failure)) from None


def malformed(field: str, position: int, reason: str) -> Malformed:
    """
    The error of a batch. Positions count from its start, or from the start of the decompressed records.
    """
    return Malformed(MessageField("RecordBatch", MAGIC, field), position, reason)


class RecordBody(Message, versions="2", zigzag=True):
    class Header(Struct):
        key: bytes
        value: bytes | None

    attributes: i8 = v()  # no bit has a meaning yet
    timestamp_delta: varlong
    offset_delta: varint
    key: bytes | None
    value: bytes | None
    headers: list[Header]


class Header(NamedTuple):
    key: str
    value: bytes | None


class Record(NamedTuple):
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...] = ()


_decode_body = decoder(RecordBody, MAGIC)


def records(batch: Batch, limit: int = RECORDS_BYTES_MAX, payload: Payload | None = None) -> Iterator[Record]:
    """
    The records of a batch, if they decompress to at most `limit` bytes. A caller that has decompressed them already
    passes the payload.

    Positions in a `Malformed` count from the start of the batch, or of the decompressed records.
    """
    header = batch.header
    if header.records_count < 0:
        raise malformed("records_count", HEADER_SIZE - 4, f"{header.records_count} records declared")
    base_offset, base_timestamp = header.base_offset, header.base_timestamp
    appended = header.max_timestamp if header.timestamp_type is TimestampType.LOG_APPEND_TIME else None
    data, pos = payload or payload_of(batch, limit)
    for _ in range(header.records_count):
        body, pos = _read_body(data, pos)
        yield Record(
            base_offset + body.offset_delta,
            base_timestamp + body.timestamp_delta if appended is None else appended,
            body.key,
            body.value,
            _headers(body) if body.headers else (),
        )
    if pos != len(data):
        raise malformed("records", pos, f"{len(data) - pos} bytes are left over")


def _headers(body: RecordBody) -> tuple[Header, ...]:
    return tuple([Header(header.key.decode(errors="surrogateescape"), header.value) for header in body.headers])


def _read_body(data: bytes, pos: int) -> tuple[RecordBody, int]:
    try:
        length, start = read_varint(data, pos)
    except (IndexError, ValueError):
        raise malformed("records", pos, "the length of a record is cut off or too large") from None
    body, end = _decode_body(data, start)
    if end - start != length:
        raise malformed("records", pos, f"a record of {end - start} bytes declares a size of {length}")
    return body, end


# Start and end among the bytes, with its length; offset delta; key; whether it has a value. A plain tuple: making a
# NamedTuple costs as much as reading the record.
Entry = tuple[int, int, int, bytes | None, bool]


def entries(payload: Payload, count: int) -> Iterator[Entry]:
    """
    Yield this many records, one after the other. Malformed if there are fewer or more.
    """
    data, pos = payload
    try:
        for _ in range(count):
            start = pos
            length = data[pos]
            pos += 1
            if length > 127:
                length, pos = more_uvarint(data, pos, length)
            end = pos + (length >> 1)
            at = pos + 2  # after the attributes and a byte of the timestamp
            while data[at - 1] > 127:
                at += 1
            delta = data[at]
            at += 1
            if delta > 127:
                delta, at = more_uvarint(data, at, delta)
            size = data[at]
            at += 1
            if size > 127:
                size, at = more_uvarint(data, at, size)
            key = None
            if not size & 1:  # else a negative number, for null
                key = data[at : at + (size >> 1)]
                at += size >> 1
            has_value = not data[at] & 1
            if at >= end or length & 1 or delta & 1:
                raise ValueError("a record is longer than it declares, or its offset is before its batch")
            yield start, end, delta >> 1, key, has_value
            pos = end
    except (IndexError, ValueError) as wrong:
        raise malformed("records", pos, f"cannot read a record here: {wrong}") from None
    if pos != len(data):
        raise malformed("records", pos, f"the records do not end with the batch, which has {len(data)} bytes")


def timestamp_at(data: bytes, start: int) -> tuple[int, int, int]:
    """
    The timestamp delta of the record that starts here, one of those found by `entries`, and the bytes between which it
    stands.
    """
    at = start
    while data[at] > 127:
        at += 1
    at += 2  # after the length and the attributes
    delta, end = data[at], at + 1
    if delta > 127:
        try:
            delta, end = more_uvarint(data, end, delta, 64)
        except ValueError as wrong:
            raise malformed("timestamp_delta", at, str(wrong)) from None
    return (delta >> 1) ^ -(delta & 1), at, end
