"""
Many conversations with a server at once, by one thread with our own codec.

A conversation is a generator: it yields a request, and gets the answer. Each has a connection of its own, for a server
answers a connection in the order in which it was asked, and JoinGroup and SyncGroup are held back until all members
are there.
"""

import selectors
import socket
from collections.abc import Generator, Iterable
from types import TracebackType
from typing import Any, Self

from kgateway.messages.catalogue import apis
from kgateway.messages.offset_commit import OffsetCommitRequest
from kgateway.wire.codec import decode, decoder
from kgateway.wire.frames import Framer
from kgateway.wire.headers import ResponseHeader, request_frame, response_header_version
from kgateway.wire.schema import Message

Conversation = Generator[Message, Any, None]

_PATIENCE_S = 120
_CHUNK_BYTES = 1 << 18
_BY_NAME = 9  # from the next version on topics have an id instead
_RESPONSES = {api.request: api.response for api in apis().values()}


def version_of(request: type[Message]) -> int:
    """
    The newest version of the request.
    """
    return _BY_NAME if request is OffsetCommitRequest else request.__spec__.versions[-1]


def frame_of(request: Message) -> bytes:
    """
    The encoded request.
    """
    return b"".join(request_frame(request, version_of(type(request)), 1, "bench"))


def answer_to(request: type[Message], frame: bytes) -> Any:
    response, version = _RESPONSES[request], version_of(request)
    _, start = decoder(ResponseHeader, response_header_version(response, version))(frame, 0)
    return decode(response, version, frame[start:])


class Connection:
    """
    The connection of one conversation. It is read only when data is ready, so only sending may block.
    """

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), _PATIENCE_S)
        self.socket.setblocking(True)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._framer = Framer()
        self._conversation: Conversation | None = None
        self._asked: type[Message] | None = None

    def begin(self, conversation: Conversation) -> bool:
        """
        Send the first request; returns False if there is none.
        """
        self._conversation = conversation
        return self._go_on(None)

    def received(self) -> list[bytes]:
        data = self.socket.recv(_CHUNK_BYTES)
        assert data, f"the server has closed the connection{f' after {self._asked.__name__}' if self._asked else ''}"
        return self._framer.feed(data)

    def goes_on(self) -> bool:
        """
        Take the answer if it is complete; returns whether the conversation continues.
        """
        assert self._asked
        for frame in self.received():
            return self._go_on(answer_to(self._asked, frame))
        return True

    def _go_on(self, answer: Any) -> bool:
        assert self._conversation
        try:
            request = self._conversation.send(answer)
        except StopIteration:
            self._asked = None
            return False
        self._asked = type(request)
        self.socket.sendall(frame_of(request))
        return True


class Connections:
    def __init__(self, port: int) -> None:
        self._port = port
        self._selector = selectors.DefaultSelector()

    def connect(self) -> Connection:
        connection = Connection(self._port)
        self._selector.register(connection.socket, selectors.EVENT_READ, connection)
        return connection

    def ready(self) -> list[Connection]:
        """
        Connections with answers to read; at least one.
        """
        found = self._selector.select(_PATIENCE_S)
        assert found, f"no answer within {_PATIENCE_S} s"
        return [key.data for key, _ in found]

    def hold(self, conversations: Iterable[tuple[Connection, Conversation]]) -> None:
        """
        Run these conversations to their end, concurrently.
        """
        under_way = sum([connection.begin(conversation) for connection, conversation in conversations])
        while under_way:
            under_way -= sum([not connection.goes_on() for connection in self.ready()])

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for key in list(self._selector.get_map().values()):
            key.data.socket.close()
        self._selector.close()
