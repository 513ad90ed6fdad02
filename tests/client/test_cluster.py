"""
A cluster of servers, each asked for what only it knows.
"""

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from kgateway.client.cluster import Cluster, Node, refuse
from kgateway.client.connection import Address, NothingListens, Unanswered
from kgateway.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from kgateway.messages.metadata import MetadataRequest, MetadataResponse
from kgateway.wire.errors import ErrorCode, KafkaError
from tests.client.scripted import ScriptedServer, scripted

PATIENCE_S = 5.0
NOBODY = Address("127.0.0.1", 1)


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    """
    A server of a cluster of two; the other one is down.
    """
    with scripted(Metadata=(0, 13), FindCoordinator=(0, 6)) as server:
        brokers = [
            MetadataResponse.Broker(node_id=7, host=NOBODY.host, port=NOBODY.port),
            MetadataResponse.Broker(node_id=3, host=server.address.host, port=server.address.port),
        ]
        server.will(MetadataResponse(brokers=brokers, topics=[]))
        yield server


@pytest.fixture
def cluster(server: ScriptedServer) -> Iterator[Cluster]:
    """
    The cluster, bootstrapped from the server that is up.
    """
    with Cluster([server.address], PATIENCE_S) as cluster:
        yield cluster


def test_servers_are_listed(server: ScriptedServer, cluster: Cluster) -> None:
    """
    They are listed without topics, and no topic is created.
    """
    assert cluster.nodes() == [Node(3, server.address), Node(7, NOBODY)]
    request, _ = server.asked[-1]
    assert isinstance(request, MetadataRequest)
    assert (request.topics, request.allow_auto_topic_creation) == ([], False)


def test_the_first_address_that_answers_is_used(server: ScriptedServer) -> None:
    """
    If no address answers, the error names each.
    """
    with Cluster([NOBODY, server.address], PATIENCE_S) as cluster:
        assert len(cluster.nodes()) == 2
    with pytest.raises(NothingListens, match=r"^nothing listens at 127\.0\.0\.1:1; nothing listens at 127\.0\.0\.1:2$"):
        Cluster([NOBODY, Address("127.0.0.1", 2)], PATIENCE_S).any_server()


def test_an_unreachable_advertised_address(server: ScriptedServer, cluster: Cluster) -> None:
    """
    The error names the server that advertised the address: usually it works for other clients only.
    """
    with pytest.raises(Unanswered, match=f"nothing listens at {NOBODY}") as refused:
        cluster.connection(Node(7, NOBODY))
    assert f"{server.address} says that server 7 is at {NOBODY}: can that address be reached" in str(refused.value)


def test_a_connection_is_reused(server: ScriptedServer, cluster: Cluster) -> None:
    assert cluster.connection(Node(3, server.address)) is cluster.connection(Node(3, server.address))


def test_a_late_answer_is_not_taken_for_another(server: ScriptedServer) -> None:
    """
    A request that was given up closes its connection; the next one has a connection of its own.
    """
    with Cluster([server.address], 0.2) as cluster:
        first = cluster.any_server()
        server.say = lambda frame: None
        with pytest.raises(Unanswered, match="did not send a response to Metadata within"):
            cluster.nodes()
        server.say = server.answer
        assert len(cluster.nodes()) == 2
        assert (first.is_open, cluster.any_server().is_open) == (False, True)
        assert cluster.connection(Node(3, server.address)) is cluster.any_server()


@pytest.mark.parametrize("newest", [0, 3, 4, 6])
def test_a_coordinator(newest: int) -> None:
    """
    Every version of the response is understood.
    """
    with ExitStack() as stack:
        server = stack.enter_context(scripted(Metadata=(0, 13), FindCoordinator=(0, newest)))
        found = FindCoordinatorResponse.Coordinator(
            key="billing", node_id=3, host="kafka", port=9092, error_code=0, error_message=None
        )
        server.will(FindCoordinatorResponse(node_id=3, host="kafka", port=9092, coordinators=[found]))
        cluster = stack.enter_context(Cluster([server.address], PATIENCE_S))
        assert cluster.coordinator("billing") == Node(3, Address("kafka", 9092))
        request, version = server.asked[-1]
        assert isinstance(request, FindCoordinatorRequest)
        assert (version, request.key or request.coordinator_keys) == (newest, "billing" if newest < 4 else ["billing"])


@pytest.mark.parametrize("newest", [3, 6])
def test_an_unavailable_coordinator(newest: int) -> None:
    """
    The error has the server's reason, in every version of the response.
    """
    code, told = ErrorCode.COORDINATOR_NOT_AVAILABLE, "not yet"
    with ExitStack() as stack:
        server = stack.enter_context(scripted(FindCoordinator=(0, newest)))
        found = FindCoordinatorResponse.Coordinator(
            key="billing", node_id=-1, host="", port=-1, error_code=code, error_message=told
        )
        server.will(FindCoordinatorResponse(error_code=code, error_message=told, node_id=-1, coordinators=[found]))
        cluster = stack.enter_context(Cluster([server.address], PATIENCE_S))
        with pytest.raises(KafkaError, match="COORDINATOR_NOT_AVAILABLE: not yet"):
            cluster.coordinator("billing")


def test_retriable_errors_are_retried(cluster: Cluster) -> None:
    """
    One example is a coordinator that is loading.
    """
    codes = [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR, ErrorCode.NONE]

    def attempt() -> str:
        refuse(codes.pop(0))
        return "done"

    assert cluster.retry(attempt) == "done"


def test_other_errors_are_raised_at_once(cluster: Cluster) -> None:
    codes = [ErrorCode.NON_EMPTY_GROUP, ErrorCode.NONE]
    with pytest.raises(KafkaError, match="NON_EMPTY_GROUP"):
        cluster.retry(lambda: refuse(codes.pop(0)))
    assert codes == [ErrorCode.NONE]


def test_retries_end_with_patience(server: ScriptedServer) -> None:
    with Cluster([server.address], 0.3) as cluster, pytest.raises(KafkaError, match="NOT_COORDINATOR"):
        cluster.retry(lambda: refuse(ErrorCode.NOT_COORDINATOR))


def test_a_missing_topic_is_not_waited_for_long(server: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Servers learn of a new topic within seconds, however much patience there is for other failures.
    """
    monkeypatch.setattr("kgateway.client.cluster.SETTLING_S", 0.2)
    with Cluster([server.address], 1_000.0) as cluster, pytest.raises(KafkaError, match="UNKNOWN_TOPIC_OR_PARTITION"):
        cluster.retry(lambda: refuse(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))


def test_broken_connections_are_reopened(server: ScriptedServer, cluster: Cluster) -> None:
    """
    This applies only to requests that may be sent twice.
    """
    said, frames = server.answer, list[bytes]()

    def say(frame: bytes) -> bytes:
        frames.append(frame)
        return b"" if len(frames) == 1 else said(frame)

    cluster.any_server()
    server.say = say
    assert len(cluster.retry(cluster.nodes, reconnect=True)) == 2
    frames.clear()
    with pytest.raises(Unanswered):
        cluster.retry(cluster.nodes)


def test_errors_have_words() -> None:
    """
    The server's message is used if there is one.
    """
    for code, message, told in (
        (ErrorCode.NON_EMPTY_GROUP, "there are 3", "NON_EMPTY_GROUP: there are 3"),
        (ErrorCode.INVALID_GROUP_ID, None, "INVALID_GROUP_ID: a group may not have this id"),
        (999, None, "UNKNOWN_SERVER_ERROR: error 999, which this client does not know"),
    ):
        with pytest.raises(KafkaError) as error:
            refuse(code, message)
        assert str(error.value) == told
    refuse(ErrorCode.NONE)
