"""
When immediate answers are written to the socket.
"""

from collections.abc import Iterator

import pytest
from twisted.internet.task import Clock
from twisted.internet.testing import MemoryReactor

from kgateway.action_queue import ActionQueue
from kgateway.cluster.view import Address
from kgateway.context import Session
from kgateway.server.budget import RequestMemory
from kgateway.server.clients import Clients
from kgateway.server.connection import Connection
from kgateway.server.writer import WRITE_BYTES
from kgateway.wire.errors import Malformed, MessageField
from tests.server.socket_pair import SocketPair

FRAME_MAX = 1 << 20


def frames(*texts: bytes) -> bytes:
    return b"".join(len(text).to_bytes(4, "big") + text for text in texts)


def serve(frame: bytes, session: Session) -> list[bytes]:
    if frame == b"damaged":
        raise Malformed(MessageField("Request", 0, "header"), 0, "damaged")
    return [b"A" * (WRITE_BYTES + 1)] if frame == b"much" else [frame.upper()]


class Asking:
    """
    A client with a real socket.
    """

    def __init__(self, clients: Clients) -> None:
        self.ends = SocketPair()
        self.connection = Connection(
            serve, Session(listener="plaintext", host="10.0.0.1", local=Address("", 0)), clients
        )
        self.ends.transport.protocol = self.connection
        self.connection.makeConnection(self.ends.transport)

    def at_once(self) -> bytes:
        """
        The bytes that arrive without the reactor's help.
        """
        self.ends.theirs.setblocking(False)
        try:
            return self.ends.theirs.recv(1 << 20)
        except BlockingIOError:
            return b""

    @property
    def asks_to_write(self) -> bool:
        reactor = self.ends.reactor
        assert isinstance(reactor, MemoryReactor)
        return self.ends.transport in reactor.getWriters()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def two(clock: Clock) -> Iterator[list[Asking]]:
    """
    Two clients of one gateway.
    """
    memory = RequestMemory(1 << 30, FRAME_MAX)
    clients = Clients(
        clock,
        ActionQueue(clock),
        memory,
        frame_bytes_max=FRAME_MAX,
        max_idle_seconds=600,
        complain=lambda session, reason: None,
    )
    made = [Asking(clients) for _ in range(2)]
    yield made
    for asking in made:
        asking.ends.close()


def test_answers_of_a_turn_are_written_together(two: list[Asking], clock: Clock) -> None:
    """
    They are written once everything that arrived in a turn of the reactor is answered, without asking the reactor for
    writability.
    """
    for asking in two:
        asking.connection.dataReceived(frames(b"a"))
    assert [asking.at_once() for asking in two] == [b"", b""]
    clock.advance(0)
    assert [asking.at_once() for asking in two] == [b"A", b"A"]
    assert not any(asking.asks_to_write for asking in two)


def test_requests_that_came_together_are_answered_at_once(two: list[Asking]) -> None:
    """
    Their answers are written together, without asking the reactor for writability: what the requests cause for others
    must not come first.
    """
    first, _ = two
    first.connection.dataReceived(frames(b"a", b"b"))
    assert first.at_once() == b"AB"
    assert not first.asks_to_write


def test_a_large_answer_does_not_wait(two: list[Asking]) -> None:
    first, _ = two
    first.connection.dataReceived(frames(b"much"))
    assert first.ends.received() == b"A" * (WRITE_BYTES + 1)


def test_many_frames_are_read_at_once(two: list[Asking]) -> None:
    """
    More is read than by Twisted's default: what a client sends behind a batch of 64 KiB arrives with it.
    """
    first, _ = two
    sent = frames(*[b"a" * 12_000] * 10)
    first.ends.theirs.sendall(sent)
    first.ends.transport.doRead()
    assert (first.connection.bytes_in, first.connection.requests) == (len(sent), 10)


def test_tls_does_not_wait(two: list[Asking]) -> None:
    """
    The transport has to encrypt in any case.
    """
    first, _ = two
    written = list[bytes]()
    first.ends.transport.TLS = True
    first.ends.transport.writeSequence = written.extend  # type: ignore[method-assign]
    first.connection.dataReceived(frames(b"a"))
    assert written == [b"A"]


def test_answers_of_the_next_turn_follow(two: list[Asking], clock: Clock) -> None:
    """
    Answers keep the order of the requests.
    """
    first, _ = two
    first.connection.dataReceived(frames(b"a"))
    first.connection.dataReceived(frames(b"b", b"c"))
    clock.advance(0)
    assert first.ends.received() == b"ABC"


def test_earlier_requests_of_a_broken_client_are_answered(two: list[Asking], clock: Clock) -> None:
    """
    Then its connection is closed.
    """
    first, _ = two
    first.connection.dataReceived(frames(b"a") + b"\xff\xff\xff\xff")
    assert not first.ends.transport.disconnecting
    clock.advance(0)
    assert first.at_once() == b"A"
    assert first.ends.transport.disconnecting


def test_a_stop_writes_pending_answers(two: list[Asking], clock: Clock) -> None:
    """
    They leave before the connection is closed.
    """
    first, _ = two
    first.connection.dataReceived(frames(b"a"))
    first.connection.finish()
    clock.advance(0)
    assert first.ends.received() == b"A"
    assert first.ends.transport.disconnecting


def test_a_client_that_disconnects_meanwhile(two: list[Asking], clock: Clock) -> None:
    """
    Nothing is written to it, and the others are answered.
    """
    first, second = two
    for asking in two:
        asking.connection.dataReceived(frames(b"a"))
    first.connection.connectionLost()
    clock.advance(0)
    assert (first.at_once(), second.at_once()) == (b"", b"A")


def test_a_full_transport_is_not_written_to(two: list[Asking], clock: Clock) -> None:
    first, _ = two
    first.connection.dataReceived(frames(b"a"))
    first.connection.pauseProducing()
    clock.advance(0)
    assert first.at_once() == b""
    first.connection.resumeProducing()
    assert first.ends.received() == b"A"
