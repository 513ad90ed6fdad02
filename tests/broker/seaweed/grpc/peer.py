"""
The other side of a channel without sockets: an HTTP/2 server by h2, which gets and sends bytes when a test says so.
"""

from collections.abc import Callable
from typing import TypeVar, cast

from google.protobuf.wrappers_pb2 import BytesValue
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import DataReceived, Event, RequestReceived
from h2.settings import SettingCodes
from twisted.internet.address import IPv4Address
from twisted.internet.defer import Deferred
from twisted.internet.error import ConnectionAborted, ConnectionDone
from twisted.internet.interfaces import IProtocol, IProtocolFactory
from twisted.internet.task import Clock
from twisted.internet.testing import StringTransport
from twisted.python.failure import Failure

from kgateway.broker.seaweed.grpc.call_headers import Metadata, Method
from kgateway.broker.seaweed.grpc.channel import Channel, PeerCheck
from kgateway.broker.seaweed.grpc.connection import Connection
from kgateway.broker.seaweed.grpc.status import RpcError
from kgateway.broker.seaweed.grpc.stream import Limits, Stream

METHOD = Method("/test.Test/Any", BytesValue, BytesValue)
AUTHORITY = "peer:1"
HEADERS = [(":status", "200"), ("content-type", "application/grpc")]

E = TypeVar("E", bound=Event)
Settings = dict[SettingCodes | int, int]


def framed(message: bytes) -> bytes:
    """
    A message as gRPC sends it.
    """
    return b"\0" + len(message).to_bytes(4, "big") + message


class Heard:
    """
    What a stream reports.
    """

    def __init__(self) -> None:
        self.messages: list[bytes] = []
        self.ends: list[RpcError | None] = []
        self.then: Callable[[], object] = lambda: None

    def received(self, message: bytes) -> None:
        self.messages.append(message)
        self.then()

    def ended(self, error: RpcError | None) -> None:
        self.ends.append(error)

    @property
    def status(self) -> str:
        (end,) = self.ends
        return "OK" if end is None else end.status.name


class Transport(StringTransport):
    """
    A transport that keeps each write, and is full when a test says so.
    """

    def __init__(self) -> None:
        super().__init__()
        self.writes: list[bytes] = []
        self.is_aborted = self.full_on_write = False

    def write(self, data: bytes) -> None:
        self.writes.append(data)
        if self.full_on_write:
            self.pause()

    def pause(self) -> None:
        assert self.producer
        self.producer.pauseProducing()

    def resume(self) -> None:
        assert self.producer
        self.producer.resumeProducing()

    def abortConnection(self) -> None:
        self.is_aborted = True
        self.loseConnection()


class Link:
    """
    One connection of a channel, as its server sees it.
    """

    def __init__(self, factory: IProtocolFactory, clock: Clock, settings: Settings) -> None:
        self.events: list[Event] = []
        self.writes: list[int] = []  # how long
        self.http2 = H2Connection(H2Configuration(client_side=False, header_encoding="utf-8"))
        self.http2.local_settings.update(settings)
        self.http2.local_settings.acknowledge()
        self.http2.initiate_connection()
        self.transport = Transport()
        self.protocol = cast(Connection, factory.buildProtocol(IPv4Address("TCP", "127.0.0.1", 1)))
        self.protocol.makeConnection(self.transport)
        self._clock = clock
        self.is_lost = False

    def pump(self) -> None:
        """
        Deliver bytes until none are left, and lose a connection that one side has closed.
        """
        while True:
            self._clock.advance(0)
            sent, self.transport.writes = self.transport.writes, []
            self.writes += map(len, sent)
            for data in sent:
                self.events += self.http2.receive_data(data)
            if self.transport.disconnecting:
                self.lose()
            answer = b"" if self.is_lost else self.http2.data_to_send()
            if answer:
                self.protocol.dataReceived(answer)
            elif not self.transport.writes:
                return

    def lose(self) -> None:
        """
        Lose the connection.
        """
        if not self.is_lost:
            self.is_lost = True
            reason = ConnectionAborted() if self.transport.is_aborted else ConnectionDone()
            self.protocol.connectionLost(Failure(reason))

    def of(self, kind: type[E]) -> list[E]:
        """
        The events of this kind.
        """
        return [event for event in self.events if isinstance(event, kind)]

    def requests(self) -> list[dict[str, str]]:
        """
        The headers of all calls.
        """
        return [{str(name): str(value) for name, value in event.headers} for event in self.of(RequestReceived)]

    def data(self, stream_id: int) -> bytes:
        """
        The data that a stream received.
        """
        return b"".join(event.data for event in self.of(DataReceived) if event.stream_id == stream_id)

    def answer(self, stream_id: int, *messages: bytes) -> None:
        """
        End a call successfully, with these messages.
        """
        self.http2.send_headers(stream_id, HEADERS)
        self.http2.send_data(stream_id, b"".join(map(framed, messages)))
        self.end(stream_id)

    def end(self, stream_id: int, status: str = "0", *more: tuple[str, str]) -> None:
        self.http2.send_headers(stream_id, [("grpc-status", status), *more], end_stream=True)
        self.pump()


class Peer:
    """
    A channel, and all that it connects to.
    """

    def __init__(
        self,
        metadata: Metadata = (),
        settings: Settings | None = None,
        check: PeerCheck | None = None,
        **limits: int,
    ) -> None:
        self.clock = Clock()
        self.attempts: list[tuple[IProtocolFactory, Deferred[IProtocol]]] = []
        self.cancelled: list[Deferred[IProtocol]] = []  # attempts
        self.channel = Channel(self._connect, AUTHORITY, self.clock, metadata, Limits(**limits), check)
        self._settings = settings or {}

    def _connect(self, factory: IProtocolFactory) -> Deferred[IProtocol]:
        made: Deferred[IProtocol] = Deferred(self.cancelled.append)
        self.attempts.append((factory, made))
        return made

    def accept(self) -> Link:
        """
        Let the last connection attempt succeed, and both sides send their greetings.
        """
        context = self.accept_silently()
        context.pump()
        return context

    def accept_silently(self) -> Link:
        """
        Let the last connection attempt succeed, without a greeting of the server.
        """
        self.clock.advance(0)
        factory, made = self.attempts[-1]
        context = Link(factory, self.clock, self._settings)
        made.callback(context.protocol)
        return context

    def call(self, timeout: float = 5, message: bytes = b"") -> Deferred[BytesValue]:
        return self.channel.call(METHOD, BytesValue(value=message), timeout)

    def open(self, timeout: float | None = None) -> tuple[Stream, Heard]:
        heard = Heard()
        return self.channel.open(METHOD, heard.received, heard.ended, timeout), heard
