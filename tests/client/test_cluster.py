"""
A cluster of servers, each asked for what it alone knows.
"""

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from kgateway.client.address import Address
from kgateway.client.cluster import Cluster, Node, refuse
from kgateway.client.connection import Unanswered
from kgateway.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from kgateway.messages.metadata import MetadataRequest, MetadataResponse
from kgateway.wire.errors import ErrorCode, KafkaError
from tests.client.scripted import Scripted, scripted

PATIENCE_S = 5.0
NOBODY = Address("127.0.0.1", 1)


@pytest.fixture
def server() -> Iterator[Scripted]:
    """
    One of a cluster of two, the other of which is down.
    """
    with scripted(Metadata=(0, 13), FindCoordinator=(0, 6)) as server:
        brokers = [
            MetadataResponse.Broker(node_id=7, host=NOBODY.host, port=NOBODY.port),
            MetadataResponse.Broker(node_id=3, host=server.address.host, port=server.address.port),
        ]
        server.will(MetadataResponse(brokers=brokers, topics=[]))
        yield server


@pytest.fixture
def cluster(server: Scripted) -> Iterator[Cluster]:
    """
    Known by the one that is up.
    """
    with Cluster([server.address], PATIENCE_S) as cluster:
        yield cluster


def test_the_servers_are_those_that_one_of_them_names(server: Scripted, cluster: Cluster) -> None:
    """
    Without topics, and none is created.
    """
    assert cluster.nodes() == [Node(3, server.address), Node(7, NOBODY)]
    request, _ = server.asked[-1]
    assert isinstance(request, MetadataRequest)
    assert (request.topics, request.allow_auto_topic_creation) == ([], False)


def test_the_first_address_at_which_somebody_answers_will_do(server: Scripted) -> None:
    """
    Where nobody does, each is told of.
    """
    with Cluster([NOBODY, server.address], PATIENCE_S) as cluster:
        assert len(cluster.nodes()) == 2
    with pytest.raises(Unanswered, match=r"^nobody listens at 127\.0\.0\.1:1; nobody listens at 127\.0\.0\.1:2$"):
        Cluster([NOBODY, Address("127.0.0.1", 2)], PATIENCE_S)


def test_a_server_that_is_not_where_it_is_said_to_be(server: Scripted, cluster: Cluster) -> None:
    """
    Who has said so is told: mostly the address is good for other clients.
    """
    with pytest.raises(Unanswered, match=f"nobody listens at {NOBODY}") as refused:
        cluster.connection(Node(7, NOBODY))
    assert f"{server.address} says that server 7 is at {NOBODY}: is that an address which" in str(refused.value)


def test_there_is_one_connection_to_a_server(server: Scripted, cluster: Cluster) -> None:
    """
    However often it is asked for.
    """
    assert cluster.connection(Node(3, server.address)) is cluster.connection(Node(3, server.address))


@pytest.mark.parametrize("newest", [0, 3, 4, 6])
def test_a_coordinator(newest: int) -> None:
    """
    Found in the form of every version.
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
def test_a_coordinator_that_there_is_not(newest: int) -> None:
    """
    The reason is told, in the form of every version.
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


def test_what_will_be_otherwise_soon_is_tried_again(cluster: Cluster) -> None:
    """
    Such as a coordinator that is loading.
    """
    codes = [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR, ErrorCode.NONE]

    def attempt() -> str:
        refuse(codes.pop(0))
        return "done"

    assert cluster.settled(attempt) == "done"


def test_what_will_not_be_otherwise_is_not_tried_again(cluster: Cluster) -> None:
    """
    It is told.
    """
    codes = [ErrorCode.NON_EMPTY_GROUP, ErrorCode.NONE]
    with pytest.raises(KafkaError, match="NON_EMPTY_GROUP"):
        cluster.settled(lambda: refuse(codes.pop(0)))
    assert codes == [ErrorCode.NONE]


def test_trying_again_ends(server: Scripted) -> None:
    """
    When patience does.
    """
    with Cluster([server.address], 0.3) as cluster, pytest.raises(KafkaError, match="NOT_COORDINATOR"):
        cluster.settled(lambda: refuse(ErrorCode.NOT_COORDINATOR))


def test_an_error_is_told_in_words() -> None:
    """
    The server's, where it has some.
    """
    for code, message, told in (
        (ErrorCode.NON_EMPTY_GROUP, "there are 3", "NON_EMPTY_GROUP: there are 3"),
        (ErrorCode.INVALID_GROUP_ID, None, "INVALID_GROUP_ID: a group may not have this id"),
        (999, None, "UNKNOWN_SERVER_ERROR: error 999, which is not known here"),
    ):
        with pytest.raises(KafkaError) as error:
            refuse(code, message)
        assert str(error.value) == told
    refuse(ErrorCode.NONE)
