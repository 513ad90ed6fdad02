"""
Messages as they come: each behind a byte that says whether it is compressed and four that say how long it is, cut
anywhere.

    0        1                 5
    | flag | length, big endian | message ...
"""

from collections.abc import Iterator
from struct import Struct

from kgateway.broker.seaweed.grpc.status import RpcError, Status

PREFIX = Struct(">BI")


class Incoming:
    """
    Puts the messages of one stream together.
    """

    __slots__ = ("_bytes_max", "_missing", "_parts", "_prefix")

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._prefix = b""  # of a message, not whole yet
        self._parts: list[bytes] = []  # of a message whose prefix is gone; joined once, or a long one costs its square
        self._missing = 0  # bytes of that message

    @property
    def is_amid(self) -> bool:
        """
        Whether a message has begun that is not whole.
        """
        return bool(self._prefix or self._parts)

    def feed(self, data: bytes) -> Iterator[bytes]:
        """
        The messages that are whole with these bytes; an RpcError where one cannot be taken.
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
            return RpcError(Status.INTERNAL, "the peer sent a compressed message, which it was not asked for")
        reason = f"the peer sent a message of {length} bytes; {self._bytes_max} are taken"
        return RpcError(Status.RESOURCE_EXHAUSTED, reason)
