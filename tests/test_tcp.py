"""
Responses that are written to the socket at once.
"""

from collections.abc import Iterator

import pytest
from twisted.internet.testing import StringTransport

from kgateway.server.writer import Outbox
from kgateway.tcp import send_now, write_now
from tests.server.socket_pair import SocketPair

LARGE = bytes(8 << 20)  # more than a socket buffers


@pytest.fixture
def ends() -> Iterator[SocketPair]:
    made = SocketPair()
    yield made
    made.transport.socket.close()
    made.theirs.close()


def test_a_socket_with_room_gets_all(ends: SocketPair) -> None:
    """
    Neither the reactor nor the transport is involved.
    """
    ends.transport.write = pytest.fail  # type: ignore[method-assign]
    write_now(ends.transport, b"answer")
    assert ends.theirs.recv(100) == b"answer"
    assert ends.reactor.getWriters() == []


def test_the_rest_follows(ends: SocketPair) -> None:
    """
    The transport writes it as soon as the socket has room.
    """
    write_now(ends.transport, LARGE + b"end")
    assert ends.reactor.getWriters() == [ends.transport]
    assert ends.received() == LARGE + b"end"


@pytest.mark.parametrize("begun", [False, True], ids=["not begun", "begun"])
def test_earlier_bytes_are_first(ends: SocketPair, begun: bool) -> None:
    """
    Bytes that the transport holds are not overtaken, whether partly sent or not.
    """
    ends.transport.write(LARGE)
    if begun:
        ends.transport.doWrite()
        ends.theirs.recv(1 << 20)
    write_now(ends.transport, b"end")
    assert ends.received().endswith(b"end")


def test_a_disconnected_client(ends: SocketPair) -> None:
    """
    The transport finds out in its own write, and ends the connection as usual.
    """
    ends.theirs.close()
    write_now(ends.transport, b"answer")
    assert ends.reactor.getWriters() == [ends.transport]
    assert isinstance(ends.transport.doWrite(), Exception)


def test_tls_is_left_to_the_transport(ends: SocketPair) -> None:
    """
    The socket never gets bytes that should be encrypted.
    """
    written = list[bytes]()
    ends.transport.TLS = True
    ends.transport.write = written.append  # type: ignore[method-assign]  # which encrypts
    write_now(ends.transport, b"answer")
    assert written == [b"answer"]
    assert ends.received() == b""


def test_a_closing_transport(ends: SocketPair) -> None:
    """
    It closes after its last write, so it has to write.
    """
    ends.transport.loseConnection()
    write_now(ends.transport, b"answer")
    ends.theirs.setblocking(False)
    with pytest.raises(BlockingIOError):
        ends.theirs.recv(100)


def test_any_other_transport_writes_itself() -> None:
    """
    A wrapper may change the bytes.
    """
    transport = StringTransport()
    write_now(transport, b"answer")
    assert transport.value() == b"answer"


def test_a_large_response_is_not_copied(ends: SocketPair) -> None:
    """
    The socket takes as many bytes of its buffers as it can; the rest is kept.
    """
    outbox = Outbox()
    outbox.put([b"head", LARGE, b"end"])
    sent = send_now(ends.transport, outbox.all())
    assert 4 < sent < len(LARGE)
    outbox.drop(sent)
    assert outbox.size == 4 + len(LARGE) + 3 - sent
    while outbox.size:
        ends.transport.writeSequence(outbox.take())
    assert ends.received() == b"head" + LARGE + b"end"


def test_more_buffers_than_a_socket_takes(ends: SocketPair) -> None:
    """
    The first buffers are written.
    """
    outbox = Outbox()
    outbox.put([b"%04d" % number for number in range(3000)])
    outbox.drop(send_now(ends.transport, outbox.all()))
    assert 0 < outbox.size < 12_000
    ends.transport.writeSequence(outbox.take())
    assert ends.received() == b"".join(b"%04d" % number for number in range(3000))


def test_the_transport_gets_all_buffers(ends: SocketPair) -> None:
    """
    Nothing is sent directly if other bytes are first, if encryption is needed, or if the client is gone.
    """
    ends.transport.write(b"before")
    assert send_now(ends.transport, [b"answer"]) == 0
    assert send_now(StringTransport(), [b"answer"]) == 0
    assert ends.received() == b"before"
    ends.transport.TLS = True
    assert send_now(ends.transport, [b"answer"]) == 0
    ends.transport.TLS = False
    ends.theirs.close()
    assert send_now(ends.transport, [b"answer"]) == 0


@pytest.mark.parametrize("sent", range(10))
def test_unsent_buffers(sent: int) -> None:
    """
    Whole buffers are dropped once sent, and of a partly sent one the end is kept.
    """
    outbox = Outbox()
    outbox.put([b"abc", b"", b"defg", b"hi"])
    outbox.drop(sent)
    assert outbox.size == 9 - sent
    assert b"".join(outbox.all()) == b"abcdefghi"[sent:]
