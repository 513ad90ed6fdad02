"""
The messages in a log file of SeaweedMQ.

    byte  size
       0     4  length of what follows
       4        a LogEntry of Protocol Buffers:
                  1  time in nanoseconds, which grows from one to the next
                  2  hash of the key
                  3  value
                  4  key
                  5  offset

A file is a run of these and nothing else; each flush adds some, and splits none. It has no checksums: a length of zero,
and a message without a time, are how bytes look that were never written.
"""

from collections import deque
from collections.abc import Iterator
from struct import Struct
from typing import NamedTuple

from google.protobuf.message import DecodeError

from kgateway.broker.seaweed.protos.filer_pb2 import LogEntry
from kgateway.wire.errors import Malformed, MessageField

LENGTH_SIZE = 4

_LENGTH = Struct(">I")
_LENGTH_MAX = (1 << 30) + (1 << 10)  # a gibibyte is the most that the broker takes
_NEW = tuple.__new__


class LoggedMessage(NamedTuple):
    """
    A message as the log has it, and the position after it in its file. Its offset is the one that the broker has given,
    or, where messages are counted, its number.
    """

    offset: int
    ts_ns: int
    key: bytes
    value: bytes
    end: int = 0


def logged_messages(data: bytes, size: int | None = None, start: int = 0) -> Iterator[LoggedMessage]:
    """
    The messages in these bytes, with which the last one ends; `start` is their position in the file.
    """
    size = len(data) if size is None else size
    pos, unpack, parse = 0, _LENGTH.unpack_from, LogEntry.FromString
    while pos < size:
        if size - pos < LENGTH_SIZE:
            raise cut_off(start + pos, start + size)
        (length,) = unpack(data, pos)
        pos += LENGTH_SIZE
        end = pos + length
        if end > size:
            raise cut_off(start + pos - LENGTH_SIZE, start + size)
        try:
            entry = parse(data[pos:end])
        except DecodeError as failure:
            raise _malformed("entry", start + pos, f"{length} bytes are not a message: {failure}") from None
        ts_ns = entry.ts_ns
        if not ts_ns:
            raise _malformed("ts_ns", start + pos, f"{length} bytes are not a message: they have no time")
        yield _NEW(LoggedMessage, (entry.offset, ts_ns, entry.key, entry.data, start + end))
        pos = end


def whole_size(data: bytes, start: int = 0) -> int:
    """
    Where the last whole message ends, in data that begins with one and may be cut off anywhere, or damaged after the
    first.
    """
    pos, size, unpack = 0, len(data), _LENGTH.unpack_from
    while size - pos >= LENGTH_SIZE:
        (length,) = unpack(data, pos)
        if not 0 < length <= _LENGTH_MAX:
            if pos:
                break
            raise _malformed("length", start + pos, f"a message cannot have {length} bytes")
        end = pos + LENGTH_SIZE + length
        if end > size:
            break
        pos = end
    return pos


def first_size(data: bytes) -> int:
    """
    The size of the first message, whose length is there.
    """
    return LENGTH_SIZE + int(_LENGTH.unpack_from(data)[0])


def last_entries(data: bytes, size: int, wanted: int, start: int = 0) -> tuple[list[LoggedMessage], int]:
    """
    The last of the messages in these bytes, as many as are wanted, found without reading the others; and how many
    messages there are.
    """
    last, pos, count = deque[int](maxlen=wanted), 0, 0
    while size - pos >= LENGTH_SIZE:
        last.append(pos)
        pos += LENGTH_SIZE + _LENGTH.unpack_from(data, pos)[0]
        count += 1
    return list(logged_messages(data[last[0] : size], None, start + last[0])), count


def cut_off(pos: int, size: int) -> Malformed:
    """
    The error for a message that is cut off.
    """
    return _malformed("length", pos, f"a message extends beyond the {size} bytes that are there")


def _malformed(field: str, position: int, reason: str) -> Malformed:
    return Malformed(MessageField("LogEntry", 0, field), position, reason)
