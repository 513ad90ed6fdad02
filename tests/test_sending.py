"""
Answers that go to the socket at once.
"""

from collections.abc import Iterator

import pytest
from twisted.internet.testing import StringTransport

from kgateway.sending import send_now, write_now
from kgateway.server.outbox import Outbox
from tests.server.ends import Ends

LARGE = bytes(8 << 20)  # more than a socket takes


@pytest.fixture
def ends() -> Iterator[Ends]:
    made = Ends()
    yield made
    made.transport.socket.close()
    made.theirs.close()


def test_a_socket_with_room_gets_all(ends: Ends) -> None:
    """
    Nothing is asked of the reactor, nor of the transport.
    """
    ends.transport.write = pytest.fail  # type: ignore[method-assign]
    write_now(ends.transport, b"answer")
    assert ends.theirs.recv(100) == b"answer"
    assert ends.reactor.getWriters() == []


def test_what_a_socket_does_not_take_follows(ends: Ends) -> None:
    """
    As soon as it has room.
    """
    write_now(ends.transport, LARGE + b"end")
    assert ends.reactor.getWriters() == [ends.transport]
    assert ends.received() == LARGE + b"end"


@pytest.mark.parametrize("begun", [False, True], ids=["not begun", "begun"])
def test_what_was_written_before_comes_first(ends: Ends, begun: bool) -> None:
    """
    Bytes that the transport holds are not overtaken, be they partly sent or not.
    """
    ends.transport.write(LARGE)
    if begun:
        ends.transport.doWrite()
        ends.theirs.recv(1 << 20)
    write_now(ends.transport, b"end")
    assert ends.received().endswith(b"end")


def test_a_client_that_is_gone(ends: Ends) -> None:
    """
    The transport finds out when it writes itself, and ends the connection as usual.
    """
    ends.theirs.close()
    write_now(ends.transport, b"answer")
    assert ends.reactor.getWriters() == [ends.transport]
    assert isinstance(ends.transport.doWrite(), Exception)


def test_tls_is_left_to_the_transport(ends: Ends) -> None:
    """
    The socket never gets what should be encrypted.
    """
    written = list[bytes]()
    ends.transport.TLS = True
    ends.transport.write = written.append  # type: ignore[method-assign]  # which encrypts
    write_now(ends.transport, b"answer")
    assert written == [b"answer"]
    assert ends.received() == b""


def test_a_transport_that_is_closing(ends: Ends) -> None:
    """
    It closes when it has written: so it has to write.
    """
    ends.transport.loseConnection()
    write_now(ends.transport, b"answer")
    ends.theirs.setblocking(False)
    with pytest.raises(BlockingIOError):
        ends.theirs.recv(100)


def test_any_other_transport_writes_itself() -> None:
    """
    A wrapper may make other bytes of them.
    """
    transport = StringTransport()
    write_now(transport, b"answer")
    assert transport.value() == b"answer"


def test_a_large_answer_is_not_copied(ends: Ends) -> None:
    """
    Its buffers go to the socket as they are, as many bytes as it takes; the others are told by what is left.
    """
    outbox = Outbox()
    outbox.put([b"head", LARGE, b"end"])
    sent = send_now(ends.transport, outbox.all())
    assert 4 < sent < len(LARGE)
    outbox.left(sent)
    assert outbox.size == 4 + len(LARGE) + 3 - sent
    while outbox.size:
        ends.transport.writeSequence(outbox.take())
    assert ends.received() == b"head" + LARGE + b"end"


def test_more_buffers_than_a_socket_takes(ends: Ends) -> None:
    """
    The first ones go.
    """
    outbox = Outbox()
    outbox.put([b"%04d" % number for number in range(3000)])
    outbox.left(send_now(ends.transport, outbox.all()))
    assert 0 < outbox.size < 12_000
    ends.transport.writeSequence(outbox.take())
    assert ends.received() == b"".join(b"%04d" % number for number in range(3000))


def test_buffers_that_no_socket_gets(ends: Ends) -> None:
    """
    Where other bytes come first, where they have to be encrypted, or the client is gone, nothing is sent.
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
def test_what_is_left(sent: int) -> None:
    """
    Whole buffers go, and of one that is sent in part its end stays.
    """
    outbox = Outbox()
    outbox.put([b"abc", b"", b"defg", b"hi"])
    outbox.left(sent)
    assert outbox.size == 9 - sent
    assert b"".join(outbox.all()) == b"abcdefghi"[sent:]
