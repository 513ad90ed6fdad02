"""
The members of measured groups, and the connections that share a thread.
"""

from collections.abc import Iterator

import pytest

from bench.kafka.classic_groups import ClassicGroups, until_coordinated
from bench.kafka.consumer_groups import ConsumerGroups
from bench.kafka.multiplexed import Connections, Conversation
from kgateway.messages.api_versions import ApiVersionsRequest
from kgateway.messages.create_topics import CreateTopicsRequest
from kgateway.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from kgateway.testing.kafka import Kafka
from kgateway.wire.schema import Message

Groups = ClassicGroups | ConsumerGroups
SIZE = 5


@pytest.fixture(scope="module")
def kafka() -> Iterator[Kafka]:
    """
    A gateway with a topic that has a partition for each member.
    """
    options = ("--broker", "memory:", "--group-initial-rebalance-delay-ms", "0")
    with Kafka(*options) as kafka:
        with Connections(kafka.port) as connections:
            topic = CreateTopicsRequest.Topic(
                name="t", num_partitions=SIZE, replication_factor=1, assignments=[], configs=[]
            )
            ask(connections, CreateTopicsRequest(topics=[topic], timeout_ms=10_000))
        yield kafka


@pytest.fixture
def connections(kafka: Kafka) -> Iterator[Connections]:
    with Connections(kafka.port) as connections:
        yield connections


def ask(connections: Connections, *requests: Message) -> list[object]:
    """
    The responses to consecutive requests on one connection.
    """
    answers: list[object] = []

    def conversation() -> Conversation:
        for request in requests:
            answers.append((yield request))

    connections.hold([(connections.connect(), conversation())])
    return answers


def described(connections: Connections, group_id: str) -> DescribeGroupsResponse.Group:
    [answer] = ask(connections, DescribeGroupsRequest(groups=[group_id]))
    assert isinstance(answer, DescribeGroupsResponse)
    return answer.groups[0]


@pytest.mark.parametrize("kind", [ClassicGroups, ConsumerGroups])
def test_all_members_are_measured(kind: type[Groups], connections: Connections) -> None:
    """
    All partitions are assigned when the groups have formed, and whenever a member of each has left and joined again.
    """
    groups = kind(connections, "t", 2, SIZE)
    groups.form()
    groups.check()
    for _ in range(2):
        groups.replace_one()
        groups.check()
    groups.dissolve()


def test_a_member_that_leaves_starts_a_generation(connections: Connections) -> None:
    """
    The measurement is one rebalance of all members.
    """
    groups = ClassicGroups(connections, "t", 1, SIZE)
    groups.form()
    before = groups.generations()
    groups.replace_one()
    assert groups.generations() == [before[0] + 1]
    groups.dissolve()


def test_no_member_is_left(connections: Connections) -> None:
    """
    The next round finds empty groups.
    """
    groups = ClassicGroups(connections, "t", 1, SIZE)
    groups.form()
    assert len(described(connections, "classic-0").members) == SIZE
    groups.dissolve()
    assert described(connections, "classic-0").group_state == "Empty"


@pytest.mark.parametrize("kind", [ClassicGroups, ConsumerGroups])
def test_an_unassigned_partition_is_noticed(kind: type[Groups], connections: Connections) -> None:
    """
    A server that does not assign all partitions does not count as fast.
    """
    with pytest.raises(AssertionError):
        kind(connections, "t", 1, SIZE).check()


def test_conversations_take_turns(connections: Connections) -> None:
    """
    A long one does not delay the end of others, and is not cut short by it.
    """
    heard: list[int] = []

    def ask_often(number: int) -> Conversation:
        for _ in range(number):
            yield ApiVersionsRequest(client_software_name="bench", client_software_version="1")
            heard.append(number)

    connections.hold([(connections.connect(), ask_often(number)) for number in (3, 1, 2)])
    assert sorted(heard) == [1, 2, 2, 3, 3, 3]


def test_a_closed_connection_is_an_error(connections: Connections) -> None:
    """
    The error says that the server closed it.
    """
    connection = connections.connect()
    connection.socket.sendall((100 << 20).to_bytes(4, "big", signed=True)[:3] + b"\xff" * 9)
    with pytest.raises(AssertionError, match="has closed the connection"):
        connections.hold([(connection, until_coordinated("g"))])
