"""
Another gateway is asked over the wire.
"""

from socket import create_server, socket
from threading import Thread

from twisted.internet.defer import maybeDeferred

from kgateway.cluster.view import Address, Node
from kgateway.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from kgateway.server.peers import Peers
from kgateway.testing.kafka import Kafka
from kgateway.wire.errors import ErrorCode, KafkaError
from tests.broker.behaviour import refusal, result

PEERS = Peers(maybeDeferred)
REQUEST = DescribeClusterRequest(include_cluster_authorized_operations=False)


def node(*ports: int) -> Node:
    """
    One that is reached at these ports, each of another listener.
    """
    return Node(7, addresses={f"listener-{port}": Address("127.0.0.1", port) for port in ports})


def asked(of: Node) -> KafkaError:
    """
    Why there is no answer.
    """
    return refusal(lambda: PEERS.ask(of, REQUEST, 1))


def hang_up(server: socket) -> None:
    """
    On whoever comes.
    """
    server.accept()[0].close()


def test_a_peer_answers() -> None:
    """
    At the first of its addresses.
    """
    with Kafka("--node-id", "7") as kafka:
        answer = result(PEERS.ask(node(kafka.port, 1), REQUEST, 1))
    assert isinstance(answer, DescribeClusterResponse)
    assert [broker.broker_id for broker in answer.brokers] == [7]


def test_a_peer_that_tells_no_address() -> None:
    """
    Is not there for others.
    """
    error = asked(node())
    assert (error.code, error.message) == (
        ErrorCode.BROKER_NOT_AVAILABLE,
        "node 7 does not say where it is reached",
    )


def test_a_peer_that_is_gone() -> None:
    """
    May be asked again later.
    """
    with create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    error = asked(node(port))
    assert error.code == ErrorCode.REQUEST_TIMED_OUT
    assert error.message == f"node 7 cannot be asked: nobody listens at 127.0.0.1:{port}"


def test_a_peer_that_hangs_up() -> None:
    """
    Nobody knows what it has done.
    """
    with create_server(("127.0.0.1", 0)) as server:
        thread = Thread(target=hang_up, args=(server,))
        thread.start()
        error = asked(node(server.getsockname()[1]))
        thread.join()
    assert error.code == ErrorCode.REQUEST_TIMED_OUT
    assert str(error.message).startswith("node 7 cannot be asked: 127.0.0.1:")
