"""
A member of a group on a scripted server, and the range assignment.
"""

from collections.abc import Iterator
from typing import Any

import pytest

from kgateway.client.cluster import Cluster
from kgateway.client.member import HEARTBEAT_S, Member, range_assignment
from kgateway.messages.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from kgateway.messages.find_coordinator import FindCoordinatorResponse
from kgateway.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kgateway.messages.join_group import JoinGroupRequest, JoinGroupResponse
from kgateway.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from kgateway.messages.metadata import MetadataResponse
from kgateway.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from kgateway.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from kgateway.topic_partition import TopicPartition
from kgateway.wire.codec import decode, encode
from kgateway.wire.errors import ErrorCode, KafkaError
from tests.client.scripted import ScriptedServer, scripted

ONE = TopicPartition("orders", 0)
OFFERED = {
    "Metadata": (0, 13),
    "FindCoordinator": (0, 6),
    "JoinGroup": (0, 9),
    "SyncGroup": (0, 5),
    "Heartbeat": (0, 4),
    "LeaveGroup": (0, 5),
    "OffsetCommit": (2, 9),
}


class Time:
    """
    A clock that a test moves.
    """

    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    """
    The coordinator of all groups, and the leader of topic `orders` with two partitions.
    """
    with scripted(**OFFERED) as server:
        host, port = server.address
        kind = MetadataResponse.Topic
        parts = [
            kind.Partition(error_code=0, partition_index=index, leader_id=1, replica_nodes=[1], isr_nodes=[1])
            for index in range(2)
        ]
        broker = MetadataResponse.Broker(node_id=1, host=host, port=port)
        server.will(MetadataResponse(brokers=[broker], topics=[kind(error_code=0, name="orders", partitions=parts)]))
        found = FindCoordinatorResponse.Coordinator(
            key="", node_id=1, host=host, port=port, error_code=0, error_message=None
        )
        server.will(FindCoordinatorResponse(coordinators=[found]))
        yield server


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def member(server: ScriptedServer, time: Time) -> Iterator[Member]:
    """
    A member that has not joined.
    """
    with Cluster([server.address], 5.0) as cluster:
        yield Member(cluster, "billing", ["orders"], time)


def joined(code: ErrorCode = ErrorCode.NONE, leader: str = "other") -> JoinGroupResponse:
    """
    A response to JoinGroup; the leader gets the members.
    """
    subscription = b"\0\0" + encode(ConsumerProtocolSubscription(topics=["orders"]), 0)
    everybody = [JoinGroupResponse.Member(member_id=name, metadata=subscription) for name in ("me", "you")]
    members = everybody if leader == "me" else []
    return JoinGroupResponse(
        error_code=code, generation_id=3, protocol_name="range", leader=leader, member_id="me", members=members
    )


def synced(*indexes: int, code: ErrorCode = ErrorCode.NONE) -> SyncGroupResponse:
    """
    A response to SyncGroup, with partitions of orders.
    """
    part = ConsumerProtocolAssignment.AssignedPartition(topic="orders", partitions=[*indexes])
    told = b"\0\0" + encode(ConsumerProtocolAssignment(assigned_partitions=[part]), 0)
    return SyncGroupResponse(error_code=code, assignment=told)


def asked(server: ScriptedServer, kind: type) -> list[Any]:
    """
    The requests of one API.
    """
    return [request for request, _ in server.asked if isinstance(request, kind)]


def test_it_joins(server: ScriptedServer, member: Member) -> None:
    """
    The member takes the id and the assignment that it gets.
    """
    server.will(joined(ErrorCode.MEMBER_ID_REQUIRED), joined())
    server.will(synced(1))
    assert member.join() == [TopicPartition("orders", 1)]
    assert [request.member_id for request in asked(server, JoinGroupRequest)] == ["", "me"]
    [sync] = asked(server, SyncGroupRequest)
    assert (sync.generation_id, sync.member_id, sync.assignments) == (3, "me", [])


def test_a_leader_assigns_partitions(server: ScriptedServer, member: Member) -> None:
    server.will(joined(leader="me"))
    server.will(synced(0))
    member.join()
    shares = {
        one.member_id: decode(ConsumerProtocolAssignment, 0, one.assignment[2:]).assigned_partitions[0].partitions
        for one in asked(server, SyncGroupRequest)[0].assignments
    }
    assert shares == {"me": [0], "you": [1]}


@pytest.mark.parametrize(
    ("code", "again_as"), [(ErrorCode.REBALANCE_IN_PROGRESS, "me"), (ErrorCode.UNKNOWN_MEMBER_ID, "")]
)
def test_it_joins_again(server: ScriptedServer, member: Member, code: ErrorCode, again_as: str) -> None:
    """
    It keeps its id after a rebalance, and has none after it was expelled.
    """
    server.will(joined())
    server.will(synced(code=code), synced(0))
    assert member.join() == [ONE]
    assert [request.member_id for request in asked(server, JoinGroupRequest)] == ["", again_as]


def test_another_assignor_is_an_error(server: ScriptedServer, member: Member) -> None:
    server.will(joined(ErrorCode.INCONSISTENT_GROUP_PROTOCOL))
    with pytest.raises(KafkaError, match="INCONSISTENT_GROUP_PROTOCOL"):
        member.join()


def test_it_sends_heartbeats(server: ScriptedServer, member: Member, time: Time) -> None:
    """
    Heartbeats are sent in time, and say when to join again.
    """
    server.will(joined())
    server.will(synced(0))
    server.will(HeartbeatResponse(error_code=0), HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS))
    member.join()
    told = []
    for _ in range(3):
        told.append(member.beat())
        time.now += HEARTBEAT_S
    assert told == [True, True, False]
    assert [(one.member_id, one.generation_id) for one in asked(server, HeartbeatRequest)] == [("me", 3)] * 2


def test_it_commits_as_a_member(server: ScriptedServer, member: Member) -> None:
    """
    An empty commit is not sent, and an expelled member learns that it is.
    """
    kind = OffsetCommitResponse.Topic
    for code in (ErrorCode.NONE, ErrorCode.ILLEGAL_GENERATION):
        parts = [kind.Partition(partition_index=0, error_code=code)]
        server.will(OffsetCommitResponse(topics=[kind(name="orders", partitions=parts)]))
    server.will(joined())
    server.will(synced(0))
    member.join()
    assert member.commit({})
    assert member.commit({ONE: 7})
    assert not member.commit({ONE: 8})
    told = [
        (one.member_id, one.generation_id_or_member_epoch, one.topics[0].partitions[0].committed_offset)
        for one in asked(server, OffsetCommitRequest)
    ]
    assert told == [("me", 3, 7), ("me", 3, 8)]
    member.join()
    assert [request.member_id for request in asked(server, JoinGroupRequest)] == ["", ""]


def test_it_leaves_with_its_id(server: ScriptedServer, member: Member) -> None:
    server.will(joined())
    server.will(synced(0))
    server.will(LeaveGroupResponse(error_code=0))
    member.join()
    member.leave()
    [request] = asked(server, LeaveGroupRequest)
    assert [one.member_id for one in request.members] == ["me"]


EACH = {
    "fewer members": ({"a": ["t"], "b": ["t"]}, {"t": 5}, {"a": {"t": [0, 1, 2]}, "b": {"t": [3, 4]}}),
    "more members": ({"b": ["t"], "a": ["t"], "c": ["t"]}, {"t": 2}, {"a": {"t": [0]}, "b": {"t": [1]}, "c": {}}),
    "two topics": (
        {"a": ["t", "u"], "b": ["u"]},
        {"t": 2, "u": 3},
        {"a": {"t": [0, 1], "u": [0, 1]}, "b": {"u": [2]}},
    ),
    "a topic that nobody reads": ({"a": []}, {"t": 2}, {"a": {}}),
}


@pytest.mark.parametrize(("subscriptions", "partitions", "shares"), EACH.values(), ids=EACH.keys())
def test_each_topic_is_assigned_in_runs(
    subscriptions: dict[str, list[str]], partitions: dict[str, int], shares: dict[str, dict[str, list[int]]]
) -> None:
    """
    Runs follow the order of member ids; the first members get the remainder.
    """
    assert range_assignment(subscriptions, partitions) == shares
