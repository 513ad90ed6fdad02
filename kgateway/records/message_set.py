"""
Message sets, what batches were before magic 2.

A set is a run of entries, each an offset, a size, and a message of magic 0 or 1:

     byte  size
        0     8  offset
        8     4  message size                 of all that follows
       12     4  CRC-32                       zlib's, of all that follows this field
       16     1  magic                        0 or 1
       17     1  attributes                   bits 0-2 codec (no zstd), from magic 1 on 3 LogAppendTime
                 timestamp                    8 bytes, from magic 1 on (KIP-32)
                 key, value                   behind lengths of four bytes, -1 for null

A compressed message has another set for its value; the message carries the offset of the last one in it.
"""

from kgateway.wire.schema import Message, v
from kgateway.wire.types import i8, i32, i64, u32


class MessageSetEntry(Message, versions="0-1"):
    """
    What stands before each message.
    """

    offset: i64
    message_size: i32


class LegacyMessage(Message, versions="0-1"):
    """
    A message; the version is its magic.
    """

    crc: u32
    magic: i8
    attributes: i8
    timestamp: i64 = v("1+", default=-1)
    key: bytes | None
    value: bytes | None
