"""
Groups as their coordinators describe them.
"""

import pytest

from kgateway.client.groups import CLASSIC, CONSUMER, MemberDescription, describe_group, list_groups
from kgateway.messages.consumer_group_describe import (
    Assignment,
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    TopicPartitions,
)
from kgateway.messages.describe_groups import DescribeGroupsResponse
from kgateway.messages.list_groups import ListGroupsResponse
from kgateway.wire.errors import ErrorCode, KafkaError
from kgateway.wire.uuids import ZERO
from tests.client.scripted import Pair

TOLD = b"\0\1\0\0\0\1\0\6orders\0\0\0\2\0\0\0\3\0\0\0\1\xff\xff\xff\xff"  # version 1, orders 3 and 1


def group_of(*group_ids: str) -> ListGroupsResponse:
    groups = [
        ListGroupsResponse.Group(group_id=name, protocol_type="consumer", group_state="Empty", group_type="classic")
        for name in group_ids
    ]
    return ListGroupsResponse(error_code=0, groups=groups)


def classic(
    assignment: bytes = b"", protocol_type: str = "consumer", state: str = "Stable", code: int = 0
) -> DescribeGroupsResponse:
    """
    A response with one classic group of one member.
    """
    member = DescribeGroupsResponse.Group.Member(
        member_id="m-1",
        group_instance_id="left",
        client_id="app",
        client_host="host/10.0.0.7",
        member_metadata=b"",
        member_assignment=assignment,
    )
    group = DescribeGroupsResponse.Group(
        error_code=code,
        group_id="billing",
        group_state=state,
        protocol_type=protocol_type,
        protocol_data="range",
        members=[member],
    )
    return DescribeGroupsResponse(groups=[group])


def modern(
    code: ErrorCode = ErrorCode.NONE, *members: ConsumerGroupDescribeResponse.Group.Member
) -> ConsumerGroupDescribeResponse:
    """
    A response with one consumer group.
    """
    group = ConsumerGroupDescribeResponse.Group(
        error_code=code,
        group_id="billing",
        group_state="Reconciling",
        group_epoch=7,
        assignment_epoch=6,
        assignor_name="uniform",
        members=list(members),
    )
    return ConsumerGroupDescribeResponse(throttle_time_ms=0, groups=[group])


def member(
    member_id: str, client_id: str, epoch: int, kind: int, now: Assignment, then: Assignment
) -> ConsumerGroupDescribeResponse.Group.Member:
    return ConsumerGroupDescribeResponse.Group.Member(
        member_id=member_id,
        member_epoch=epoch,
        client_id=client_id,
        client_host="/10.0.0.7",
        subscribed_topic_names=[],
        assignment=now,
        target_assignment=then,
        member_type=kind,
    )


def assigned(*indexes: int) -> Assignment:
    return Assignment(topic_partitions=[TopicPartitions(topic_id=ZERO, topic_name="orders", partitions=list(indexes))])


def test_the_groups_of_all_servers_are_listed(pair: Pair) -> None:
    """
    Groups are sorted by id, each with its coordinator.
    """
    pair.first.will(group_of("b", "d"))
    pair.second.will(group_of("c", "a"))
    assert [(group.group_id, group.coordinator.id) for group in list_groups(pair.cluster)] == [
        ("a", 1),
        ("b", 0),
        ("c", 1),
        ("d", 0),
    ]


def test_a_refusal_to_list(pair: Pair) -> None:
    """
    A refusal is an error, not an empty list.
    """
    pair.first.will(group_of("b"))
    pair.second.will(ListGroupsResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, groups=[]))
    with pytest.raises(KafkaError, match="COORDINATOR_LOAD_IN_PROGRESS"):
        list_groups(pair.cluster)


@pytest.mark.parametrize(
    "code", [ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION, ErrorCode.INVALID_GROUP_ID]
)
def test_a_classic_group(pair: Pair, code: ErrorCode) -> None:
    """
    A group that is no consumer group is described as classic, with the assignment that its leader wrote.
    """
    pair.second.will(modern(code))
    pair.second.will(classic(TOLD))
    group = describe_group(pair.cluster, "billing")
    assert (group.type, group.state, group.assignor, group.epoch) == (CLASSIC, "Stable", "range", None)
    assert group.coordinator.address == pair.second.address
    assert group.members == [MemberDescription("m-1", "left", "app", "10.0.0.7", CLASSIC, {"orders": [1, 3]})]


def test_a_server_without_consumer_groups(pair: Pair) -> None:
    """
    ConsumerGroupDescribe is sent only to servers that have it.
    """
    del pair.second.offered[ConsumerGroupDescribeRequest.__spec__.key or 0]
    pair.second.will(classic(TOLD))
    assert describe_group(pair.cluster, "billing").type == CLASSIC


@pytest.mark.parametrize(
    ("assignment", "protocol_type", "read"),
    [
        (b"", "consumer", {}),
        (TOLD, "connect", None),
        (TOLD[:20], "consumer", None),
        (b"\0\x63" + TOLD[2:] + b"more", "consumer", {"orders": [1, 3]}),
    ],
)
def test_assignments_of_classic_members(
    pair: Pair, assignment: bytes, protocol_type: str, read: dict[str, list[int]] | None
) -> None:
    """
    An empty assignment has no partitions; other protocols and broken bytes are unknown; newer versions are read as far
    as known.
    """
    pair.second.will(modern(ErrorCode.GROUP_ID_NOT_FOUND))
    pair.second.will(classic(assignment, protocol_type=protocol_type))
    [told] = describe_group(pair.cluster, "billing").members
    assert told.assigned == read


@pytest.mark.parametrize("code", [ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.NONE])
def test_a_missing_group(pair: Pair, code: int) -> None:
    """
    DescribeGroups answers with the state Dead.
    """
    pair.second.will(modern(ErrorCode.GROUP_ID_NOT_FOUND))
    pair.second.will(classic(code=code, state="Dead"))
    with pytest.raises(KafkaError, match="there is no group billing"):
        describe_group(pair.cluster, "billing")


def test_a_consumer_group(pair: Pair) -> None:
    """
    The description has an epoch, members sorted by client, and target assignments.
    """
    later = member("a", "z", 6, -1, assigned(1, 0), assigned(1))
    sooner = member("b", "y", 7, 1, assigned(), assigned(0))
    pair.second.will(modern(ErrorCode.NONE, later, sooner))
    group = describe_group(pair.cluster, "billing")
    assert (group.type, group.state, group.assignor, group.epoch) == (CONSUMER, "Reconciling", "uniform", 7)
    assert group.members == [
        MemberDescription("b", None, "y", "10.0.0.7", CONSUMER, {"orders": []}, {"orders": [0]}, 7),
        MemberDescription("a", None, "z", "10.0.0.7", "", {"orders": [0, 1]}, {"orders": [1]}, 6),
    ]


@pytest.mark.parametrize("code", [ErrorCode.GROUP_AUTHORIZATION_FAILED, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS])
def test_a_refusal_to_describe(pair: Pair, code: ErrorCode) -> None:
    """
    A refused consumer group is not asked for as a classic one.
    """
    for of_consumers in (code, ErrorCode.GROUP_ID_NOT_FOUND):
        pair.second.answers.clear()
        pair.second.will(modern(of_consumers))
        pair.second.will(classic(code=code))
        with pytest.raises(KafkaError, match=code.name):
            describe_group(pair.cluster, "billing")
