"""
Makes message sets of batches, for old consumers.

Message sets have no headers, producers and control batches, so these are left out. A compressed batch becomes one
compressed message as a whole. An uncompressed batch becomes a message for each record, from the requested offset on:
such messages stand alone, and some clients take the first one that they get for the one they asked for. No old client
knows zstd.
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import NamedTuple

from kgateway.records.batch import HEADER_SIZE, LOG_APPEND_TIME_BIT, NO_TIMESTAMP, Batch, TimestampType, batches
from kgateway.records.compression import Codec, compress
from kgateway.records.message_set import MessageSetEntry, entry
from kgateway.records.old_lz4 import broken
from kgateway.records.record import RECORDS_BYTES_MAX, Record, payload_of, records
from kgateway.records.slices import RECORDS_A_STEP, Steps
from kgateway.wire.codec import encode
from kgateway.wire.errors import ErrorCode, KafkaError, Malformed
from kgateway.wire.types import Buffer

# The head of a message that does not fit, from which old clients learn that they have to ask for more bytes. Kafka
# writes the same numbers: no offset, and the least size of a batch.
TOO_LARGE = encode(MessageSetEntry(offset=-1, message_size=HEADER_SIZE), 0)


class MessageSet(NamedTuple):
    """
    Messages in pieces, and the offset after the last batch that was read. More of that batch may be left.
    """

    parts: list[Buffer]
    size: int
    end: int


def downgraded(
    found: Iterable[Buffer], magic: int, offset: int, bytes_max: int, given_up: Callable[[], bool] = lambda: False
) -> Steps[MessageSet]:
    """
    The messages of these batches from an offset on: at least the first one, and more until there are this many bytes,
    or the client is gone.
    """
    try:
        return (yield from _downgraded(found, magic, offset, bytes_max, given_up))
    except Malformed as malformed:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, str(malformed)) from None


def _downgraded(
    found: Iterable[Buffer], magic: int, offset: int, bytes_max: int, given_up: Callable[[], bool]
) -> Steps[MessageSet]:
    parts: list[Buffer] = []
    size, end = 0, offset
    for batch in (batch for data in found for batch in batches(data)):
        if given_up() or (parts and size >= bytes_max):
            break
        if batch.header.codec is Codec.ZSTD and not batch.header.is_control:
            if parts:
                break  # the client learns it when it asks for this one
            reason = "the client does not support batches that are compressed with zstd"
            raise KafkaError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, reason)
        end = batch.header.last_offset + 1
        message, is_all = yield from _converted(batch, magic, offset, bytes_max - size, not parts)
        if message:
            parts.append(message)
            size += len(message)
        if not is_all:
            break
    return MessageSet(parts, size, end)


def _converted(batch: Batch, magic: int, offset: int, room: int, is_first: bool) -> Steps[tuple[bytes, bool]]:
    header = batch.header
    if header.is_control or not header.records_count:
        return b"", True
    attributes = header.attributes & LOG_APPEND_TIME_BIT if magic else 0
    if header.codec is not Codec.NONE:
        return (yield from _wrapped(batch, magic, attributes)), True
    out = bytearray()
    for count, record in enumerate(records(batch)):
        if count % RECORDS_A_STEP == 0:
            yield None
        if record.offset < offset:
            continue
        message = _entry(record.offset, record, magic, attributes)
        if len(out) + len(message) > room and not (is_first and not out):
            return bytes(out), False
        out += message
    return bytes(out), True


def _wrapped(batch: Batch, magic: int, attributes: int) -> Steps[bytes]:
    """
    One message that holds one for each record.
    """
    codec = batch.header.codec
    payload = yield partial(payload_of, batch)
    out = bytearray()
    base = last = None
    latest = NO_TIMESTAMP
    for count, record in enumerate(records(batch, payload=payload)):
        if count % RECORDS_A_STEP == 0:
            yield None
        base = record.offset if base is None else base
        last, latest = record.offset, max(latest, record.timestamp)
        out += _entry(record.offset - base if magic else record.offset, record, magic, attributes)
        if len(out) > RECORDS_BYTES_MAX:
            reason = f"a batch converts to more than {RECORDS_BYTES_MAX} bytes of messages"
            raise KafkaError(ErrorCode.MESSAGE_TOO_LARGE, reason)
    if last is None:
        return b""
    packed: bytes = yield partial(_packed, codec, out, magic)
    stamp = batch.header.max_timestamp if batch.header.timestamp_type is TimestampType.LOG_APPEND_TIME else latest
    return entry(last, magic, None, packed, stamp, attributes | codec)


def _entry(offset: int, record: Record, magic: int, attributes: int) -> bytes:
    return entry(offset, magic, record.key, record.value, record.timestamp, attributes)


def _packed(codec: Codec, data: Buffer, magic: int) -> bytes:
    packed = compress(codec, data)
    return broken(packed) if codec is Codec.LZ4 and magic == 0 else packed
