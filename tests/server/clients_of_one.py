"""
Clients of a gateway with the embedded log, without a reactor, and without sockets unless a test asks for one.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.testing import StringTransport

from kgateway.cluster.view import Address, NewTopic
from kgateway.config.settings import Settings
from kgateway.context import GatewayParts, Session
from kgateway.messages.fetch import FetchRequest
from kgateway.messages.produce import ProduceRequest
from kgateway.observe.reasons import Reasons
from kgateway.records.builder import BatchBuilder
from kgateway.security.authorizer import AllowAll
from kgateway.server.budget import RequestMemory
from kgateway.server.clients import Clients
from kgateway.server.connection import Connection
from kgateway.server.discovery import discover
from kgateway.server.dispatch import Dispatcher
from kgateway.server.gateway import wall_clock_ms
from kgateway.server.registry import Registry
from kgateway.wire.headers import request_frame
from kgateway.wire.schema import Message
from tests.broker.log.log_brokers import log_broker
from tests.server.socket_pair import SocketPair
from tests.turns import TurnClock

TOPIC = "orders"
_FRAME_MAX = 1 << 20


class OneGateway:
    """
    A gateway with one topic. `written` has the names of its clients, in the order in which something was written to
    them.
    """

    def __init__(self, folder: Path) -> None:
        self.clock = TurnClock()
        self.written: list[str] = []
        self.broker = log_broker(folder, clock=self.clock, now_ms=wall_clock_ms)
        assert self.broker.start().called
        made: list[Any] = []
        self.broker.create_topic(NewTopic(TOPIC, 1)).addCallback(made.append)
        assert made
        registry = Registry(discover(()))
        self.parts = GatewayParts(
            broker=self.broker,
            settings=Settings(group_initial_rebalance_delay_ms=0),
            authorizer=AllowAll(),
            clock=self.clock,
            now_ms=wall_clock_ms,
            advertised=registry.advertised,
        )
        self.dispatcher = Dispatcher(self.parts, registry, Reasons())
        self._clients = Clients(
            self.clock,
            self.parts.actions,
            RequestMemory(1 << 30, _FRAME_MAX),
            frame_bytes_max=_FRAME_MAX,
            max_idle_seconds=60,
            complain=self._fail,
        )

    def connect(self, name: str = "client") -> "OneClient":
        return OneClient(self._connection(), _Transport(name, self.written))

    def connect_socket(self, pair: SocketPair) -> "SocketClient":
        return SocketClient(self._connection(), pair, self)

    def turn(self) -> None:
        """
        Let the reactor take its next turn.
        """
        self.clock.turn()

    def stop(self) -> None:
        self.parts.stop()
        stopped: Deferred[None] = self.broker.stop()
        assert stopped.called

    def _connection(self) -> Connection:
        session = Session(listener="plaintext", host="127.0.0.1", local=Address("127.0.0.1", 9092))
        return Connection(self.dispatcher.serve, session, self._clients)

    def _fail(self, session: Session, reason: object) -> None:
        raise AssertionError(reason)


class _Transport(StringTransport):
    def __init__(self, name: str, written: list[str]) -> None:
        super().__init__()
        self._name = name
        self._written = written

    def setTcpNoDelay(self, enabled: bool) -> None: ...
    def setTcpKeepAlive(self, enabled: bool) -> None: ...

    def write(self, data: bytes) -> None:
        self._written.append(self._name)
        super().write(data)

    def writeSequence(self, data: Iterable[bytes]) -> None:
        self.write(b"".join(data))


class OneClient:
    def __init__(self, connection: Connection, transport: Any) -> None:
        self._connection = connection
        self._transport = transport
        connection.makeConnection(transport)

    def send(self, *requests: tuple[Message, int]) -> None:
        """
        Send requests in these versions together.
        """
        self.send_frame(b"".join(frame_of(request, version) for request, version in requests))

    def send_frame(self, frame: bytes) -> None:
        self._connection.dataReceived(frame)

    def received(self) -> bytes:
        """
        What has come since the last call.
        """
        answer: bytes = self._transport.value()
        self._transport.clear()
        return answer

    def ask(self, request: Message, version: int) -> bytes:
        """
        Send a request and return its immediate response.
        """
        self.send((request, version))
        return self.received()


class SocketClient(OneClient):
    """
    Its responses leave as those of a running gateway do, by a socket and at the end of the reactor's turn.
    """

    def __init__(self, connection: Connection, pair: SocketPair, gateway: OneGateway) -> None:
        super().__init__(connection, pair.transport)
        self._pair = pair
        self._gateway = gateway

    def received(self) -> bytes:
        self._gateway.turn()
        return self._pair.received()


def frame_of(request: Message, version: int) -> bytes:
    return b"".join(request_frame(request, version, 7, "client"))


def produce() -> ProduceRequest:
    builder = BatchBuilder()
    builder.append(b"key", bytes(100), timestamp=wall_clock_ms())
    topic = ProduceRequest.TopicData
    data = [topic.PartitionData(index=0, records=builder.build())]
    topics = [topic(name=TOPIC, partition_data=data)]
    return ProduceRequest(transactional_id=None, acks=-1, timeout_ms=1000, topic_data=topics)


def fetch(offset: int) -> FetchRequest:
    """
    A Fetch of one partition without a session.
    """
    topic = FetchRequest.Topic
    partition = topic.Partition(partition=0, fetch_offset=offset, log_start_offset=-1, partition_max_bytes=1 << 20)
    topics = [topic(topic=TOPIC, partitions=[partition])]
    return FetchRequest(max_wait_ms=500, min_bytes=1, session_epoch=-1, topics=topics)
