"""
A connection that asks.
"""

import socket
import threading
from collections.abc import Iterator
from contextlib import closing, suppress

import pytest

from kgateway import __version__
from kgateway.client.address import Address
from kgateway.client.connection import Connection, Unanswered
from kgateway.messages.api_versions import ApiVersionsRequest
from kgateway.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from kgateway.messages.offset_delete import OffsetDeleteRequest
from tests.client.scripted import Scripted, scripted

PATIENCE_S = 5.0
NO_GROUPS = ListGroupsResponse(error_code=0, groups=[])


@pytest.fixture
def server() -> Iterator[Scripted]:
    """
    One that knows two APIs.
    """
    with scripted(ListGroups=(0, 3)) as server:
        server.will(NO_GROUPS)
        yield server


@pytest.fixture
def connection(server: Scripted) -> Iterator[Connection]:
    """
    One to it.
    """
    with closing(Connection(server.address, PATIENCE_S)) as connection:
        yield connection


def refused(address: Address, patience_s: float = PATIENCE_S) -> str:
    """
    Why there is no connection.
    """
    with pytest.raises(Unanswered) as error:
        Connection(address, patience_s)
    return str(error.value)


def test_it_asks_for_versions_first(server: Scripted, connection: Connection) -> None:
    """
    And says what it is.
    """
    [(request, version)] = server.asked
    assert isinstance(request, ApiVersionsRequest)
    assert (request.client_software_name, request.client_software_version, version) == ("kgateway", __version__, 4)


def test_the_newest_version_that_both_know_is_asked(server: Scripted, connection: Connection) -> None:
    """
    Here the server's, for it is older.
    """
    assert connection.ask(ListGroupsRequest(), ListGroupsResponse) == NO_GROUPS
    assert server.asked[-1][1] == 3


def test_a_version_can_be_too_new_for_what_is_asked(server: Scripted, connection: Connection) -> None:
    """
    Then an older one is asked.
    """
    connection.ask(ListGroupsRequest(), ListGroupsResponse, newest=1)
    assert server.asked[-1][1] == 1


def test_a_newer_server_is_asked_in_the_newest_version_that_is_known() -> None:
    """
    Ours.
    """
    with scripted(ListGroups=(2, 99)) as server:
        server.will(NO_GROUPS)
        with closing(Connection(server.address, PATIENCE_S)) as connection:
            connection.ask(ListGroupsRequest(), ListGroupsResponse)
        assert server.asked[-1][1] == 5


def test_an_older_server_is_asked_for_its_versions_in_the_oldest_form() -> None:
    """
    It has said that it does not know the newest.
    """
    with (
        scripted(ApiVersions=(0, 2), ListGroups=(0, 0)) as server,
        closing(Connection(server.address, PATIENCE_S)) as connection,
    ):
        assert [version for _, version in server.asked] == [0]
        assert connection.serves(ListGroupsRequest)


def test_what_a_server_does_not_serve_is_not_asked(server: Scripted, connection: Connection) -> None:
    """
    Whether it does can be seen.
    """
    assert connection.serves(ListGroupsRequest)
    assert not connection.serves(OffsetDeleteRequest)
    with pytest.raises(Unanswered, match=f"^{server.address} does not serve OffsetDelete in a version that is known"):
        connection.ask(OffsetDeleteRequest(group_id="g", topics=[]), ListGroupsResponse)


def test_versions_that_do_not_meet_are_none() -> None:
    """
    The server has dropped all that are known here.
    """
    with scripted(ListGroups=(90, 99)) as server, closing(Connection(server.address, PATIENCE_S)) as connection:
        assert not connection.serves(ListGroupsRequest)


def test_nobody_listens() -> None:
    """
    The address is named.
    """
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = Address("127.0.0.1", free.getsockname()[1])
    assert refused(address) == f"nobody listens at {address}"


def test_a_host_that_is_not_known() -> None:
    """
    The host is named.
    """
    for host in ("nowhere.invalid", ".no-first-part", "no..part", 64 * "x" + ".too-long"):
        assert refused(Address(host, 9092)) == f"the host {host} is not known here"


def test_a_server_that_is_silent() -> None:
    """
    It is waited for as long as is said.
    """
    with scripted() as server:
        waiting = threading.Event()

        def never(frame: bytes) -> bytes:
            waiting.wait()
            return b""

        server.say = never
        told = f"{server.address} did not give an answer to ApiVersions within 0.05 s"
        assert refused(server.address, 0.05) == told
        waiting.set()


def test_a_server_that_never_ends_its_answer() -> None:
    """
    The whole answer is waited for no longer, though there is always a byte more of it.
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
        assert refused(address, 0.2) == f"{address} did not give an answer to ApiVersions within 0.2 s"
        ended.set()
        timer.cancel()
        thread.join()


def test_a_server_that_hangs_up() -> None:
    """
    It may want what cannot be given.
    """
    with scripted() as server:
        server.say = lambda frame: b""
        told = f"{server.address} closed the connection instead of an answer to ApiVersions: it may want TLS or a login"
        assert refused(server.address).startswith(told)


@pytest.mark.parametrize("told", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b"\0\0\0\2\0\0", b"\0\0\0\7\0\0\0\1\0\0\xff"])
def test_what_is_no_kafka_server(told: bytes) -> None:
    """
    Neither a size that cannot be nor an answer that is none is taken for one.
    """
    with scripted() as server:
        server.say = lambda frame: told
        assert f"what listens at {server.address} does not speak Kafka's protocol" in refused(server.address)


def test_a_connection_that_worked_wants_no_login(server: Scripted, connection: Connection) -> None:
    """
    When it breaks later, nobody is told that it may.
    """
    server.say = lambda frame: b""
    with pytest.raises(Unanswered, match=r"closed the connection instead of an answer to ListGroups$"):
        connection.ask(ListGroupsRequest(), ListGroupsResponse)


def test_what_is_told_and_taken(server: Scripted, connection: Connection) -> None:
    """
    Is known by what is asked after it; where it was not taken, the connection has ended.
    """
    server.say = lambda frame: None if frame[:2] == b"\0\x10" else server.answer(frame)
    connection.tell(ListGroupsRequest())
    connection.check()
    server.say = lambda frame: b""
    connection.tell(ListGroupsRequest())
    with pytest.raises(Unanswered, match="closed the connection"):
        connection.check()


def test_an_answer_to_another_question(server: Scripted, connection: Connection) -> None:
    """
    It is not taken for one to this.
    """
    server.say = lambda frame: server.answer(frame[:4] + b"\0\0\0\x63" + frame[8:])
    with pytest.raises(Unanswered, match="answers what it was not asked"):
        connection.ask(ListGroupsRequest(), ListGroupsResponse)


def test_an_answer_may_come_in_pieces() -> None:
    """
    It is put together.
    """
    with scripted(ListGroups=(0, 3)) as server:
        groups = [ListGroupsResponse.Group(group_id=f"g{n}", protocol_type="x" * 1000) for n in range(2000)]
        server.will(ListGroupsResponse(error_code=0, groups=groups))
        with closing(Connection(server.address, PATIENCE_S)) as connection:
            answer = connection.ask(ListGroupsRequest(), ListGroupsResponse)
        assert [group.group_id for group in answer.groups] == [f"g{n}" for n in range(2000)]
