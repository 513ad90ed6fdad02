"""
Messages on a stream, each after a byte that says whether it is compressed and four bytes with its length.

    0        1                 5
    | flag | length, big endian | message ...

Received messages are cut anywhere; sent ones wait until the windows of HTTP/2 and the transport have room.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from struct import Struct

from kgateway.broker.seaweed.grpc.status import RpcError, Status

PREFIX = Struct(">BI")


class MessageReader:
    """
    Puts the received messages of one stream together.
    """

    __slots__ = ("_bytes_max", "_missing", "_parts", "_prefix")

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._prefix = b""  # of a message, not whole yet
        self._parts: list[bytes] = []  # of a message whose prefix was read; joined once, or a long one costs its square
        self._missing = 0  # bytes of that message

    @property
    def is_amid(self) -> bool:
        """
        Whether a message has begun that is not whole.
        """
        return bool(self._prefix or self._parts)

    def feed(self, data: bytes) -> Iterator[bytes]:
        """
        The messages that these bytes complete; raises an RpcError if one cannot be accepted.
        """
        at = 0
        if self._parts:
            if len(data) < self._missing:
                self._parts.append(data)
                self._missing -= len(data)
                return
            at, parts, self._parts = self._missing, self._parts, []
            yield b"".join((*parts, data[:at]))
        elif self._prefix:
            data, self._prefix = self._prefix + data, b""
        size = len(data)
        while size - at >= PREFIX.size:
            is_compressed, length = PREFIX.unpack_from(data, at)
            if is_compressed or length > self._bytes_max:
                raise self._refused(is_compressed, length)
            at += PREFIX.size
            if size - at < length:
                self._parts, self._missing = [data[at:]], length - (size - at)
                return
            yield data[at : at + length]
            at += length
        self._prefix = data[at:]

    def _refused(self, is_compressed: int, length: int) -> RpcError:
        if is_compressed:
            return RpcError(Status.INTERNAL, "the peer sent a compressed message, although none was requested")
        reason = f"the peer sent a message of {length} bytes; at most {self._bytes_max} are accepted"
        return RpcError(Status.RESOURCE_EXHAUSTED, reason)


_pack = PREFIX.pack


class MessageWriter:
    """
    The messages of one stream that wait to be sent.
    """

    __slots__ = ("_bytes_max", "_parts", "is_ended", "is_finished", "size")

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._parts: deque[bytes | memoryview] = deque()
        self.size = 0  # bytes, with what gRPC puts before each message
        self.is_finished = False  # nothing is put any more
        self.is_ended = False  # and the peer knows

    @property
    def is_waiting(self) -> bool:
        """
        Whether something was not sent to the peer yet.
        """
        return self.size > 0 or (self.is_finished and not self.is_ended)

    def put(self, messages: Sequence[bytes]) -> None:
        """
        Queue messages in order; raises an RpcError if one is too long, then none is queued.
        """
        if max(map(len, messages), default=0) > self._bytes_max:
            raise RpcError(Status.RESOURCE_EXHAUSTED, f"a message of more than {self._bytes_max} bytes is not sent")
        append, size = self._parts.append, self.size
        for message in messages:
            append(_pack(0, len(message)))
            append(message)
            size += PREFIX.size + len(message)
        self.size = size

    def take(self, room: int) -> bytes:
        """
        The first bytes, no more than fit.
        """
        parts, taken, left = self._parts, [], room
        while left and parts:
            part = parts.popleft()
            if len(part) > left:
                view = memoryview(part)
                parts.appendleft(view[left:])
                part = view[:left]
            taken.append(part)
            left -= len(part)
        data = b"".join(taken)
        self.size -= len(data)
        return data

    def clear(self) -> None:
        self._parts.clear()
        self.size = 0
