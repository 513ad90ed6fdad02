"""
The records inside a batch.

On the wire a record is its length and a `RecordBody`, whose offset and timestamp count from those of the batch; what
`records` yields stands on its own.

Header keys are text to Kafka, which does not check that they are. Here they become `str` with the error handler
`surrogateescape`, Python's way for file names: broken UTF-8 goes in and comes out again, byte for byte.
"""

from collections.abc import Iterator
from typing import NamedTuple

from kgateway.records.batch import HEADER_SIZE, MAGIC, Batch, TimestampType
from kgateway.records.payload import RECORDS_BYTES_MAX, Payload, malformed, payload_of
from kgateway.wire.codec import decoder
from kgateway.wire.schema import Message, Struct, v
from kgateway.wire.types import i8, varint, varlong
from kgateway.wire.varints import read_varint


class RecordBody(Message, versions="2", zigzag=True):
    """
    A record behind its length.
    """

    class Header(Struct):
        key: bytes
        value: bytes | None

    attributes: i8 = v()  # no bit of it has a meaning yet
    timestamp_delta: varlong
    offset_delta: varint
    key: bytes | None
    value: bytes | None
    headers: list[Header]


class Header(NamedTuple):
    """
    A note beside a record.
    """

    key: str
    value: bytes | None


class Record(NamedTuple):
    """
    A record, with its own offset and timestamp.
    """

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...] = ()


_decode_body = decoder(RecordBody, MAGIC)


def records(batch: Batch, limit: int = RECORDS_BYTES_MAX, payload: Payload | None = None) -> Iterator[Record]:
    """
    The records of a batch, one by one, if decompressing them gives no more than `limit` bytes. Who has done that
    already gives the payload.

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
        raise malformed("records", pos, f"a record of {end - start} bytes is declared to have {length}")
    return body, end
