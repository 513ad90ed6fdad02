"""
A connection with one request at a time, and addresses.
"""

import signal
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from types import FrameType
from typing import NoReturn

import pytest

from kgateway import __version__
from kgateway.client.connection import Address, Connection, Unanswered
from kgateway.messages.api_versions import ApiVersionsRequest
from kgateway.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from kgateway.messages.offset_delete import OffsetDeleteRequest
from tests.client.scripted import ScriptedServer, scripted

PATIENCE_S = 5.0
NO_GROUPS = ListGroupsResponse(error_code=0, groups=[])


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    """
    A server with two APIs.
    """
    with scripted(ListGroups=(0, 3)) as server:
        server.will(NO_GROUPS)
        yield server


@pytest.fixture
def connection(server: ScriptedServer) -> Iterator[Connection]:
    with closing(Connection(server.address, PATIENCE_S)) as connection:
        yield connection


def refused(address: Address, patience_s: float = PATIENCE_S) -> str:
    """
    The message of the refused connection.
    """
    with pytest.raises(Unanswered) as error:
        Connection(address, patience_s)
    return str(error.value)


def test_api_versions_is_the_first_request(server: ScriptedServer, connection: Connection) -> None:
    """
    It has the client's name.
    """
    [(request, version)] = server.asked
    assert isinstance(request, ApiVersionsRequest)
    assert (request.client_software_name, request.client_software_version, version) == ("kgateway", __version__, 4)


def test_the_newest_common_version_is_used(server: ScriptedServer, connection: Connection) -> None:
    """
    An older server limits the version.
    """
    assert connection.ask(ListGroupsRequest(), ListGroupsResponse) == NO_GROUPS
    assert server.asked[-1][1] == 3


def test_a_caller_can_limit_the_version(server: ScriptedServer, connection: Connection) -> None:
    connection.ask(ListGroupsRequest(), ListGroupsResponse, newest=1)
    assert server.asked[-1][1] == 1


def test_a_newer_server() -> None:
    """
    The client's newest version is used.
    """
    with scripted(ListGroups=(2, 99)) as server:
        server.will(NO_GROUPS)
        with closing(Connection(server.address, PATIENCE_S)) as connection:
            connection.ask(ListGroupsRequest(), ListGroupsResponse)
        assert server.asked[-1][1] == 5


def test_an_old_server_gets_api_versions_v0() -> None:
    """
    v0 follows a refusal of the newest version.
    """
    with (
        scripted(ApiVersions=(0, 2), ListGroups=(0, 0)) as server,
        closing(Connection(server.address, PATIENCE_S)) as connection,
    ):
        assert [version for _, version in server.asked] == [0]
        assert connection.serves(ListGroupsRequest)


def test_a_missing_api(server: ScriptedServer, connection: Connection) -> None:
    """
    An API that the server lacks is an error; callers can check for it.
    """
    assert connection.serves(ListGroupsRequest)
    assert not connection.serves(OffsetDeleteRequest)
    with pytest.raises(
        Unanswered, match=f"^{server.address} does not serve OffsetDelete in a version that this client knows"
    ):
        connection.ask(OffsetDeleteRequest(group_id="g", topics=[]), ListGroupsResponse)


def test_no_common_version() -> None:
    """
    An API whose known versions the server has dropped counts as missing.
    """
    with scripted(ListGroups=(90, 99)) as server, closing(Connection(server.address, PATIENCE_S)) as connection:
        assert not connection.serves(ListGroupsRequest)


def test_a_closed_port_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = Address("127.0.0.1", free.getsockname()[1])
    assert refused(address) == f"nothing listens at {address}"


def test_a_server_that_sends_text_is_named() -> None:
    """
    Its response begins with text, which would be the size of a huge frame.
    """
    with scripted() as server:
        server.say = lambda frame: b"HTTP/1.1 400 Bad Request\r\n\r\n"
        told = f"what listens at {server.address} does not speak Kafka's protocol: its response begins with 'HTTP'"
        assert refused(server.address) == told


def test_an_unknown_host_is_named() -> None:
    for host in ("nowhere.invalid", ".no-first-part", "no..part", 64 * "x" + ".too-long"):
        assert refused(Address(host, 9092)) == f"the host {host} is unknown"


def test_a_silent_server() -> None:
    """
    A response is awaited as long as patience lasts.
    """
    with scripted() as server:
        waiting = threading.Event()

        def never(frame: bytes) -> bytes:
            waiting.wait()
            return b""

        server.say = never
        told = f"{server.address} did not send a response to ApiVersions within 0.05 s"
        assert refused(server.address, 0.05) == told
        waiting.set()


def test_a_signal_that_interrupts_no_system_call_is_noticed() -> None:
    """
    So it is if the signal comes just before the client begins to wait, or to another thread, as here.
    """

    class Signalled(Exception):
        pass

    def signalled(_number: int, _frame: FrameType | None) -> NoReturn:
        raise Signalled

    with socket.create_server(("127.0.0.1", 0)) as listening:

        def receive() -> None:
            accepted, _ = listening.accept()
            with accepted:
                accepted.recv(1)
                signal.pthread_kill(threading.get_ident(), signal.SIGUSR1)
                ended.wait()

        ended = threading.Event()
        before = signal.signal(signal.SIGUSR1, signalled)
        server = threading.Thread(target=receive)
        server.start()
        began = time.monotonic()
        try:
            with pytest.raises(Signalled):
                Connection(Address(*listening.getsockname()), 10 * PATIENCE_S)
            assert time.monotonic() - began < PATIENCE_S
        finally:
            ended.set()
            server.join()
            signal.signal(signal.SIGUSR1, before)


def test_an_endless_response() -> None:
    """
    Patience is for the whole response, however its bytes trickle.
    """
    with socket.create_server(("127.0.0.1", 0)) as listening:
        ended = threading.Event()

        def trickle() -> None:
            peer, _ = listening.accept()
            with peer, suppress(OSError):
                peer.sendall(b"\0\0\xff\xff")
                while not ended.wait(0.02):
                    peer.sendall(b"\0")

        thread = threading.Thread(target=trickle)
        thread.start()
        timer = threading.Timer(PATIENCE_S, ended.set)
        timer.start()
        address = Address("127.0.0.1", listening.getsockname()[1])
        assert refused(address, 0.2) == f"{address} did not send a response to ApiVersions within 0.2 s"
        ended.set()
        timer.cancel()
        thread.join()


def test_a_server_that_hangs_up() -> None:
    """
    The error suggests that the server wants TLS or a login.
    """
    with scripted() as server:
        server.say = lambda frame: b""
        told = "closed the connection without a response to ApiVersions: it may require TLS or a login"
        assert refused(server.address).startswith(f"{server.address} {told}")


@pytest.mark.parametrize("told", [b"\xff\xff\xff\xff", b"\0\0\0\2\0\0", b"\0\0\0\7\0\0\0\1\0\0\xff"])
def test_a_server_of_another_protocol(told: bytes) -> None:
    """
    Impossible sizes and responses are refused.
    """
    with scripted() as server:
        server.say = lambda frame: told
        assert f"what listens at {server.address} does not speak Kafka's protocol" in refused(server.address)


def test_a_connection_that_worked_needs_no_login(server: ScriptedServer, connection: Connection) -> None:
    """
    A connection that breaks later is not blamed on a missing login.
    """
    server.say = lambda frame: b""
    with pytest.raises(Unanswered, match=r"closed the connection without a response to ListGroups$"):
        connection.ask(ListGroupsRequest(), ListGroupsResponse)


def test_requests_without_a_response(server: ScriptedServer, connection: Connection) -> None:
    """
    The server refuses such a request by closing the connection after it.
    """
    server.say = lambda frame: None if frame[:2] == b"\0\x10" else server.answer(frame)
    connection.send_only(ListGroupsRequest())
    connection.check()
    server.say = lambda frame: b""
    connection.send_only(ListGroupsRequest())
    with pytest.raises(Unanswered, match="closed the connection"):
        connection.check()


def test_a_response_to_another_request(server: ScriptedServer, connection: Connection) -> None:
    """
    A response with another correlation id is an error.
    """
    server.say = lambda frame: server.answer(frame[:4] + b"\0\0\0\x63" + frame[8:])
    with pytest.raises(Unanswered, match=r"sent an unexpected response \(correlation id mismatch\)"):
        connection.ask(ListGroupsRequest(), ListGroupsResponse)


def test_a_response_in_pieces() -> None:
    """
    A response is read across packets.
    """
    with scripted(ListGroups=(0, 3)) as server:
        groups = [ListGroupsResponse.Group(group_id=f"g{n}", protocol_type="x" * 1000) for n in range(2000)]
        server.will(ListGroupsResponse(error_code=0, groups=groups))
        with closing(Connection(server.address, PATIENCE_S)) as connection:
            answer = connection.ask(ListGroupsRequest(), ListGroupsResponse)
        assert [group.group_id for group in answer.groups] == [f"g{n}" for n in range(2000)]


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [("localhost:9092", "localhost", 9092), (" 10.0.0.1:1 ", "10.0.0.1", 1), ("[::1]:65535", "::1", 65_535)],
)
def test_addresses_are_parsed_and_printed(text: str, host: str, port: int) -> None:
    address = Address.parse(text)
    assert address == (host, port)
    assert str(address) == text.strip()


@pytest.mark.parametrize(("text", "host"), [("kafka", "kafka"), ("10.0.0.1", "10.0.0.1"), ("[::1]", "::1")])
def test_the_default_port_is_the_one_of_kafka(text: str, host: str) -> None:
    """
    An IPv6 address needs brackets then too.
    """
    assert Address.parse(text) == (host, 9092)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", ""),
        (":9092", ""),
        ("kafka:", ""),
        ("kafka 1", ""),
        ("kafka/1", ""),
        ("kafka:0", ": a port is a number from 1 to 65535"),
        ("kafka:65536", ": a port is a number from 1 to 65535"),
        ("kafka:x", ": a port is a number from 1 to 65535"),
        ("::1", ": an IPv6 address has brackets, as in [::1]:9092"),
        ("::1:9092", ": an IPv6 address has brackets, as in [::1]:9092"),
        ("[::1:9092", ": an IPv6 address has brackets, as in [::1]:9092"),
        ("[kafka]:9092", ": an IPv6 address has brackets, as in [::1]:9092"),
        ("http://kafka:9092", ", without a protocol"),
    ],
)
def test_invalid_addresses_are_refused(text: str, why: str) -> None:
    """
    The error has the text, and what is wrong with it.
    """
    with pytest.raises(ValueError, match="must be HOST or HOST:PORT") as refused:
        Address.parse(text)
    assert str(refused.value) == f"{text!r} must be HOST or HOST:PORT{why}"
