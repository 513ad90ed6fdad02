"""
Messages that wait to be sent, until HTTP/2's windows and the transport have room.
"""

from collections import deque
from collections.abc import Sequence

from kgateway.broker.seaweed.grpc.incoming import PREFIX
from kgateway.broker.seaweed.grpc.status import RpcError, Status

_pack = PREFIX.pack


class Outgoing:
    """
    Of one stream.
    """

    __slots__ = ("_bytes_max", "_parts", "is_ended", "is_finished", "size")

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._parts: deque[bytes | memoryview] = deque()
        self.size = 0  # bytes, with what gRPC puts before each message
        self.is_finished = False  # nothing is put any more
        self.is_ended = False  # and the peer has been told so

    @property
    def is_waiting(self) -> bool:
        """
        Whether there is something that the peer has not been sent.
        """
        return self.size > 0 or (self.is_finished and not self.is_ended)

    def put(self, messages: Sequence[bytes]) -> None:
        """
        Let them wait, in order; an RpcError where one is too long, then none does.
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
        """
        Forget them all.
        """
        self._parts.clear()
        self.size = 0
