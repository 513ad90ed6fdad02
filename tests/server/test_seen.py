"""
A connection as operators see it.
"""

from kgateway.messages.metadata import MetadataRequest
from kgateway.server.outbox import Outbox
from kgateway.server.pending import Pending
from kgateway.server.seen import HEAD_BYTES, client_id, seen
from kgateway.wire.headers import request_frame
from tests.server.test_connection import Client


def frame(name: str | None, version: int = 4) -> bytes:
    """
    A request of this client, without its size.
    """
    return b"".join(request_frame(MetadataRequest(topics=[]), version, 1, name))[4:]


def test_what_was_counted() -> None:
    """
    Bytes both ways, requests, and the time by either clock.
    """
    client = Client()
    client.clock.advance(5)
    client.sends(b"abc", b"de")
    client.clock.advance(2)
    told = seen(client.connection, client.clock.seconds(), 1_000_000)
    assert (told["requests"], told["bytes_in"], told["bytes_out"]) == (2, 13, 5)
    assert (told["since_ms"], told["idle_s"]) == (993_000, 2)
    assert (told["listener"], told["principal"], told["software"]) == ("plaintext", "User:ANONYMOUS", "unknown")


def test_large_answers_are_counted() -> None:
    """
    However they leave.
    """
    client = Client(Pending.of([bytes(300_000), bytes(5)]), Pending.of([bytes(70_000)]))
    client.sends(b"a", b"b")
    client.turn()
    assert client.connection.bytes_out == 370_005 == len(client.transport.value())


def test_what_leaves_at_once_is_counted() -> None:
    """
    A socket may take a part.
    """
    outbox = Outbox()
    outbox.put([b"abc", b"defg"])
    outbox.left(4)
    assert outbox.written == 4
    outbox.take()
    assert outbox.written == 7


def test_the_client_id_is_that_of_the_first_request() -> None:
    """
    In classic headers and flexible ones; a client may have none, and one that is no client at all has none.
    """
    client = Client()
    client.sends(frame("billing-1"))
    client.sends(frame("other"))
    assert seen(client.connection, 0, 0)["client_id"] == "billing-1"
    assert client_id(frame("billing-1", version=12)[:HEAD_BYTES]) == "billing-1"
    assert client_id(frame(None)) == client_id(b"") == client_id(b"GET / HTTP/1.1") == client_id(b"\0") == ""
    assert client_id(frame("x" * 30_000)[:HEAD_BYTES]) == ""


def test_what_it_waits_for() -> None:
    """
    A request, the rest of one, an answer, or that the client reads.
    """
    client = Client(Pending(next_may_start=True, polls=True))
    assert client.connection.waits_for == "a request"
    client.connection.dataReceived(b"\0\0\0\x05ab")
    assert client.connection.waits_for == "the rest of a request of 5 bytes"
    client.connection.dataReceived(b"cde")
    assert client.connection.waits_for == "the answer to a request"
    client.connection.pauseProducing()
    assert client.connection.waits_for == "the client to read its answers"


def test_it_may_wait_for_memory() -> None:
    """
    For a large request there may be none yet.
    """
    client = Client(memory_bytes=100 << 20)
    client.connection.dataReceived((90 << 20).to_bytes(4, "big") + b"ab")
    first = client.connection.waits_for
    other, second = client.connect()
    second.dataReceived((90 << 20).to_bytes(4, "big") + b"ab")
    assert (first, second.waits_for) == (
        "the rest of a request of 94371840 bytes",
        "memory for a request of 94371840 bytes",
    )
    assert not other.aborted
