"""
Connections as operators see them.
"""

from kgateway.messages.metadata import MetadataRequest
from kgateway.server.clients import HEAD_BYTES, client_id, describe
from kgateway.server.request_queue import PendingAnswer
from kgateway.server.writer import Outbox
from kgateway.wire.headers import request_frame
from tests.server.test_connection import Client


def frame(name: str | None, version: int = 4) -> bytes:
    """
    A request of this client without its size.
    """
    return b"".join(request_frame(MetadataRequest(topics=[]), version, 1, name))[4:]


def test_traffic_is_counted() -> None:
    """
    Bytes in both directions, requests, and the time by either clock.
    """
    client = Client()
    client.clock.advance(5)
    client.sends(b"abc", b"de")
    client.clock.advance(2)
    told = describe(client.connection, client.clock.seconds(), 1_000_000)
    assert (told["requests"], told["bytes_in"], told["bytes_out"]) == (2, 13, 5)
    assert (told["since_ms"], told["idle_s"]) == (993_000, 2)
    assert (told["listener"], told["principal"], told["software"]) == ("plaintext", "User:ANONYMOUS", "unknown")


def test_large_responses_are_counted() -> None:
    """
    It does not matter how they are written.
    """
    client = Client(PendingAnswer.of([bytes(300_000), bytes(5)]), PendingAnswer.of([bytes(70_000)]))
    client.sends(b"a", b"b")
    client.turn()
    assert client.connection.bytes_out == 370_005 == len(client.transport.value())


def test_partial_writes_are_counted() -> None:
    outbox = Outbox()
    outbox.put([b"abc", b"defg"])
    outbox.drop(4)
    assert outbox.written == 4
    outbox.take()
    assert outbox.written == 7


def test_the_client_id_is_that_of_the_first_request() -> None:
    """
    It is read from classic and flexible headers; it is null for a client without one, and for one that does not speak
    Kafka's protocol.
    """
    client = Client()
    client.sends(frame("billing-1"))
    client.sends(frame("other"))
    assert describe(client.connection, 0, 0)["client_id"] == "billing-1"
    assert client_id(frame("billing-1", version=12)[:HEAD_BYTES]) == "billing-1"
    assert client_id(frame(None)) == client_id(b"") == client_id(b"GET / HTTP/1.1") == client_id(b"\0") == ""
    assert client_id(frame("x" * 30_000)[:HEAD_BYTES]) == ""


def test_the_state_says_what_a_connection_waits_for() -> None:
    """
    A request, the rest of one, a response, or a client that reads.
    """
    client = Client(PendingAnswer(next_may_start=True, polls=True))
    assert client.connection.waits_for == "a request"
    client.connection.dataReceived(b"\0\0\0\x05ab")
    assert client.connection.waits_for == "the rest of a request of 5 bytes"
    client.connection.dataReceived(b"cde")
    assert client.connection.waits_for == "the response to a request"
    client.connection.pauseProducing()
    assert client.connection.waits_for == "the client to read its responses"


def test_a_connection_may_wait_for_memory() -> None:
    """
    There may be none for a large request.
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
