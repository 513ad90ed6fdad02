"""
Requests to another gateway over the wire.
"""

from socket import create_server, socket
from threading import Thread

import pytest
from twisted.logger import capturedLogs

from kgateway.cluster.view import Address, Node
from kgateway.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from kgateway.server import peers
from kgateway.server.peers import Peers
from kgateway.testing.kafka import Kafka
from kgateway.wire.errors import ErrorCode, KafkaError
from tests.broker.seaweed.real_reactor import reactor, wait

PEERS = Peers(reactor)
REQUEST = DescribeClusterRequest(include_cluster_authorized_operations=False)


def node(*ports: int) -> Node:
    """
    A node with these ports, one for each listener.
    """
    return Node(7, addresses={f"listener-{port}": Address("127.0.0.1", port) for port in ports})


def asked(of: Node) -> KafkaError:
    """
    The error of a request.
    """
    with pytest.raises(KafkaError) as error:
        wait(PEERS.ask(of, REQUEST, 1))
    return error.value


def hang_up(server: socket) -> None:
    """
    Close each connection at once.
    """
    server.accept()[0].close()


def talk(server: socket) -> None:
    with server.accept()[0] as connection:
        connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        connection.recv(1 << 16)


def test_a_peer_answers() -> None:
    """
    The first of its addresses is used.
    """
    with Kafka("--node-id", "7") as kafka, capturedLogs() as logs:
        answer = wait(PEERS.ask(node(kafka.port, 1), REQUEST, 1))
    assert isinstance(answer, DescribeClusterResponse)
    assert not [each for each in logs if "factory" in each]  # two lines for each request
    assert [broker.broker_id for broker in answer.brokers] == [7]


def test_a_peer_without_an_address_is_unreachable() -> None:
    error = asked(node())
    assert (error.code, error.message) == (
        ErrorCode.BROKER_NOT_AVAILABLE,
        "node 7 advertises no address",
    )


def test_a_dead_peer_may_be_asked_again() -> None:
    with create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    error = asked(node(port))
    assert error.code == ErrorCode.REQUEST_TIMED_OUT
    assert str(error.message).startswith(f"node 7 cannot be reached at 127.0.0.1:{port}: Connection was refused")


@pytest.mark.parametrize(
    ("host", "reason"),
    [
        (f"{'a' * 64}.example", "no response within 0.5 s"),  # resolved for ever
        ("a..b", "invalid hostname: "),
        ("not_there", "DNS lookup failed: "),  # a name to Docker, but none to HostnameEndpoint
    ],
)
def test_an_invalid_host_is_not_waited_for(monkeypatch: pytest.MonkeyPatch, host: str, reason: str) -> None:
    monkeypatch.setattr(peers, "_CONNECT_S", 0.5)
    error = asked(Node(7, addresses={"plaintext": Address(host, 9092)}))
    assert error.code == ErrorCode.REQUEST_TIMED_OUT
    assert str(error.message).startswith(f"node 7 cannot be reached at {host}:9092: {reason}")


def test_a_peer_that_hangs_up() -> None:
    """
    What the node has done is unknown.
    """
    with create_server(("127.0.0.1", 0)) as server:
        thread = Thread(target=hang_up, args=(server,))
        thread.start()
        error = asked(node(server.getsockname()[1]))
        thread.join()
    assert error.code == ErrorCode.REQUEST_TIMED_OUT
    assert "may have executed the request, but did not respond: Connection" in str(error.message)


def test_a_silent_peer_times_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers, "_ANSWER_S", 0.2)
    with create_server(("127.0.0.1", 0)) as server:
        error = asked(node(server.getsockname()[1]))
    assert error.code == ErrorCode.REQUEST_TIMED_OUT
    assert str(error.message).endswith("may have executed the request, but did not respond: no response within 0.2 s")


def test_a_peer_that_does_not_speak_kafka() -> None:
    with create_server(("127.0.0.1", 0)) as server:
        thread = Thread(target=talk, args=(server,))
        thread.start()
        error = asked(node(server.getsockname()[1]))
        thread.join()
    assert error.code == ErrorCode.REQUEST_TIMED_OUT
    assert "a frame of 1213486160 bytes" in str(error.message)
