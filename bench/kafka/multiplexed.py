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
    The one in which it is asked: the newest.
    """
    return _BY_NAME if request is OffsetCommitRequest else request.__spec__.versions[-1]


def frame_of(request: Message) -> bytes:
    """
    The request as it travels.
    """
    return b"".join(request_frame(request, version_of(type(request)), 1, "bench"))


def answer_to(request: type[Message], frame: bytes) -> Any:
    """
    What the server says to it.
    """
    response, version = _RESPONSES[request], version_of(request)
    _, start = decoder(ResponseHeader, response_header_version(response, version))(frame, 0)
    return decode(response, version, frame[start:])


class Connection:
    """
    One of them. It is read when there is something, so that only sending may wait.
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
        Ask its first question; whether there is one.
        """
        self._conversation = conversation
        return self._go_on(None)

    def received(self) -> list[bytes]:
        """
        Answers that have come.
        """
        data = self.socket.recv(_CHUNK_BYTES)
        assert data, f"the server has closed the connection{f' after {self._asked.__name__}' if self._asked else ''}"
        return self._framer.feed(data)

    def goes_on(self) -> bool:
        """
        Take the answer, if all of it has come; whether the conversation goes on.
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
    """
    All of them.
    """

    def __init__(self, port: int) -> None:
        self._port = port
        self._selector = selectors.DefaultSelector()

    def connect(self) -> Connection:
        """
        One more.
        """
        connection = Connection(self._port)
        self._selector.register(connection.socket, selectors.EVENT_READ, connection)
        return connection

    def ready(self) -> list[Connection]:
        """
        Those on which answers have come; at least one.
        """
        found = self._selector.select(_PATIENCE_S)
        assert found, f"no answer within {_PATIENCE_S} s"
        return [key.data for key, _ in found]

    def hold(self, conversations: Iterable[tuple[Connection, Conversation]]) -> None:
        """
        Hold these to their end, all at once.
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
