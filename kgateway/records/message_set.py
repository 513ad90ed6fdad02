"""
Message sets, the format of records before record batches (magic 0 and 1).

A set is a run of entries, each an offset, a size, and a message of magic 0 or 1:

     byte  size
        0     8  offset
        8     4  message size                 of all that follows
       12     4  CRC-32                       zlib's, of all that follows this field
       16     1  magic                        0 or 1
       17     1  attributes                   bits 0-2 codec (no zstd), from magic 1 on 3 LogAppendTime
                 timestamp                    8 bytes, from magic 1 on (KIP-32)
                 key, value                   behind lengths of four bytes, -1 for null

A compressed message has another set for its value; the message carries the offset of the last one in it. With magic 0
the offsets inside are those of the log, with magic 1 they count from the first one inside. Offsets that producers send
mean nothing.
"""

from collections.abc import Iterator
from zlib import crc32

from kgateway.records.batch import MAGIC_AT, NO_TIMESTAMP
from kgateway.wire.codec import decoder, encoder
from kgateway.wire.errors import Malformed, MessageField
from kgateway.wire.schema import Message, v
from kgateway.wire.types import i8, i32, i64, u32

ENTRY_SIZE = 12  # the head of each message
_CRC_SIZE = 4
_MESSAGE_SIZE_MIN = 14  # of magic 0, without key and value


class MessageSetEntry(Message, versions="0-1"):
    offset: i64
    message_size: i32


class LegacyMessage(Message, versions="0-1"):
    crc: u32
    magic: i8
    attributes: i8
    timestamp: i64 = v("1+", default=NO_TIMESTAMP)
    key: bytes | None
    value: bytes | None


_decode_entry = decoder(MessageSetEntry, 0)
_encode_entry = encoder(MessageSetEntry, 0)
_decode_message = tuple(decoder(LegacyMessage, magic) for magic in (0, 1))
_encode_message = tuple(encoder(LegacyMessage, magic) for magic in (0, 1))


def places(data: bytes) -> Iterator[tuple[int, int, int]]:
    """
    The offset of each message, and its start and end. A last one that is cut off is left out, as in Kafka.
    """
    pos = 0
    while pos + ENTRY_SIZE <= len(data):
        entry, start = _decode_entry(data, pos)
        if entry.message_size < _MESSAGE_SIZE_MIN:
            raise _malformed("message_size", pos, f"a message has at least {_MESSAGE_SIZE_MIN} bytes, not this number")
        pos = start + entry.message_size
        if pos > len(data):
            return
        yield entry.offset, start, pos


def magic_of(data: bytes, start: int) -> int:
    return data[start + MAGIC_AT - ENTRY_SIZE]


def crc_holds(data: bytes, start: int, end: int) -> bool:
    body = start + _CRC_SIZE
    return crc32(memoryview(data)[body:end]) == int.from_bytes(data[start:body], "big")


def message_at(data: bytes, start: int, end: int) -> LegacyMessage:
    message, stop = _decode_message[magic_of(data, start)](data, start)
    if stop != end:
        raise _malformed("value", stop, f"the message ends here, but should end at {end}")
    return message


def entry(
    offset: int, magic: int, key: bytes | None, value: bytes | None, timestamp: int = NO_TIMESTAMP, attributes: int = 0
) -> bytes:
    message = LegacyMessage(crc=0, magic=magic, attributes=attributes, timestamp=timestamp, key=key, value=value)
    body = b"".join(_encode_message[magic](message))[_CRC_SIZE:]
    head = _encode_entry(MessageSetEntry(offset=offset, message_size=_CRC_SIZE + len(body)))
    return b"".join((*head, crc32(body).to_bytes(_CRC_SIZE, "big"), body))


def _malformed(field: str, position: int, reason: str) -> Malformed:
    return Malformed(MessageField("MessageSet", 0, field), position, reason)
