"""
A member of a group, before a server that says what a test has it say.
"""

from collections.abc import Iterator
from typing import Any

import pytest

from kgateway.client.cluster import Cluster
from kgateway.client.member import HEARTBEAT_S, Member
from kgateway.client.offsets import Partition
from kgateway.messages.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from kgateway.messages.find_coordinator import FindCoordinatorResponse
from kgateway.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kgateway.messages.join_group import JoinGroupRequest, JoinGroupResponse
from kgateway.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from kgateway.messages.metadata import MetadataResponse
from kgateway.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from kgateway.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from kgateway.wire.codec import decode, encode
from kgateway.wire.errors import ErrorCode, KafkaError
from tests.client.scripted import Scripted, scripted

ONE = Partition("orders", 0)
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
    A clock that stands until it is moved.
    """

    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def server() -> Iterator[Scripted]:
    """
    It coordinates all groups, and leads topic `orders` of two partitions.
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
    """
    The member's.
    """
    return Time()


@pytest.fixture
def member(server: Scripted, time: Time) -> Iterator[Member]:
    """
    One that has not joined.
    """
    with Cluster([server.address], 5.0) as cluster:
        yield Member(cluster, "billing", ["orders"], time)


def joined(code: ErrorCode = ErrorCode.NONE, leader: str = "other") -> JoinGroupResponse:
    """
    As `me`; the leader learns of the members.
    """
    subscription = b"\0\0" + encode(ConsumerProtocolSubscription(topics=["orders"]), 0)
    everybody = [JoinGroupResponse.Member(member_id=name, metadata=subscription) for name in ("me", "you")]
    members = everybody if leader == "me" else []
    return JoinGroupResponse(
        error_code=code, generation_id=3, protocol_name="range", leader=leader, member_id="me", members=members
    )


def synced(*indexes: int, code: ErrorCode = ErrorCode.NONE) -> SyncGroupResponse:
    """
    These partitions of orders.
    """
    part = ConsumerProtocolAssignment.AssignedPartition(topic="orders", partitions=[*indexes])
    told = b"\0\0" + encode(ConsumerProtocolAssignment(assigned_partitions=[part]), 0)
    return SyncGroupResponse(error_code=code, assignment=told)


def asked(server: Scripted, kind: type) -> list[Any]:
    """
    The requests of a kind.
    """
    return [request for request, _ in server.asked if isinstance(request, kind)]


def test_it_joins(server: Scripted, member: Member) -> None:
    """
    With the id that it is given, and reads what it is given.
    """
    server.will(joined(ErrorCode.MEMBER_ID_REQUIRED), joined())
    server.will(synced(1))
    assert member.join() == [Partition("orders", 1)]
    assert [request.member_id for request in asked(server, JoinGroupRequest)] == ["", "me"]
    [sync] = asked(server, SyncGroupRequest)
    assert (sync.generation_id, sync.member_id, sync.assignments) == (3, "me", [])


def test_a_leader_shares_out(server: Scripted, member: Member) -> None:
    """
    To all members.
    """
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
def test_it_joins_again(server: Scripted, member: Member, code: ErrorCode, again_as: str) -> None:
    """
    When the group shares out anew meanwhile, and as somebody new when it is not known any more.
    """
    server.will(joined())
    server.will(synced(code=code), synced(0))
    assert member.join() == [ONE]
    assert [request.member_id for request in asked(server, JoinGroupRequest)] == ["", again_as]


def test_what_cannot_be_is_an_error(server: Scripted, member: Member) -> None:
    """
    Such as a group of members that share out by other rules.
    """
    server.will(joined(ErrorCode.INCONSISTENT_GROUP_PROTOCOL))
    with pytest.raises(KafkaError, match="INCONSISTENT_GROUP_PROTOCOL"):
        member.join()


def test_it_says_that_it_lives(server: Scripted, member: Member, time: Time) -> None:
    """
    When it is time to, and hears when it has to join again.
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


def test_it_commits_as_a_member(server: Scripted, member: Member) -> None:
    """
    Nothing is not committed, and who has been expelled is told so.
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


def test_it_leaves(server: Scripted, member: Member) -> None:
    """
    As who it is.
    """
    server.will(joined())
    server.will(synced(0))
    server.will(LeaveGroupResponse(error_code=0))
    member.join()
    member.leave()
    [request] = asked(server, LeaveGroupRequest)
    assert [one.member_id for one in request.members] == ["me"]
