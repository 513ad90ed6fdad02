"""
Groups, as their coordinators tell of them.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from kgateway.client.cluster import Cluster, Node, refuse
from kgateway.messages.consumer_group_describe import (
    Assignment,
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from kgateway.messages.consumer_protocol import ConsumerProtocolAssignment
from kgateway.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from kgateway.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from kgateway.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from kgateway.wire.codec import decoder
from kgateway.wire.errors import ErrorCode, KafkaError
from kgateway.wire.malformed import Malformed

CLASSIC, CONSUMER = "classic", "consumer"
TYPES = (CLASSIC, CONSUMER, "share", "streams")
Assigned = dict[str, list[int]]  # the partitions of each topic

_DEAD = "Dead"  # what older servers say of a group they do not know
_VERSION_BYTES = 2
_NEWEST_ASSIGNMENT = ConsumerProtocolAssignment.__spec__.versions[-1]
_MEMBER_TYPES = {0: CLASSIC, 1: CONSUMER}
# The empty id is one that a consumer group cannot have, and offsets can be committed for.
_NO_CONSUMER_GROUP = (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION, ErrorCode.INVALID_GROUP_ID)


@dataclass(frozen=True, slots=True)
class Listed:
    """
    A group among others; servers of old do not tell type and state.
    """

    group_id: str
    type: str
    state: str
    protocol_type: str
    coordinator: Node


@dataclass(frozen=True, slots=True)
class Member:
    """
    A member of a group. What it is assigned is not known where its protocol is not that of consumers.
    """

    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    protocol: str
    assigned: Assigned | None
    target: Assigned | None = None  # what it will be assigned in the end, of the consumer protocol alone
    epoch: int | None = None


@dataclass(frozen=True, slots=True)
class Described:
    """
    A group and its members.
    """

    group_id: str
    type: str
    state: str
    protocol_type: str
    assignor: str
    coordinator: Node
    members: list[Member]
    epoch: int | None = None


def listed(cluster: Cluster) -> list[Listed]:
    """
    The groups of all servers, by their ids.
    """
    return sorted((group for node in cluster.nodes() for group in _of(node, cluster)), key=lambda group: group.group_id)


def _of(node: Node, cluster: Cluster) -> Iterator[Listed]:
    answer = cluster.connection(node).ask(ListGroupsRequest(), ListGroupsResponse)
    refuse(answer.error_code)
    for group in answer.groups:
        yield Listed(group.group_id, group.group_type, group.group_state, group.protocol_type, node)


def described(cluster: Cluster, group_id: str) -> Described:
    """
    The group; GROUP_ID_NOT_FOUND where there is none of a type that is described here.
    """
    coordinator = cluster.coordinator(group_id)
    connection = cluster.connection(coordinator)
    if connection.serves(ConsumerGroupDescribeRequest):
        request = ConsumerGroupDescribeRequest(group_ids=[group_id], include_authorized_operations=False)
        [group] = connection.ask(request, ConsumerGroupDescribeResponse).groups
        if group.error_code not in _NO_CONSUMER_GROUP:
            refuse(group.error_code, group.error_message)
            return _consumer_group(group, coordinator)
    [classic] = connection.ask(DescribeGroupsRequest(groups=[group_id]), DescribeGroupsResponse).groups
    if classic.error_code == ErrorCode.GROUP_ID_NOT_FOUND or classic.group_state == _DEAD:
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"there is no classic and no consumer group {group_id}")
    refuse(classic.error_code, classic.error_message)
    return _classic_group(classic, coordinator)


def delete(cluster: Cluster, group_id: str) -> None:
    """
    Have the group forgotten, with its offsets.
    """
    connection = cluster.connection(cluster.coordinator(group_id))
    [result] = connection.ask(DeleteGroupsRequest(groups_names=[group_id]), DeleteGroupsResponse).results
    refuse(result.error_code)


def _sorted(members: Iterable[Member]) -> list[Member]:
    return sorted(members, key=lambda member: (member.client_id, member.member_id))


def _consumer_group(group: ConsumerGroupDescribeResponse.Group, coordinator: Node) -> Described:
    return Described(
        group_id=group.group_id,
        type=CONSUMER,
        state=group.group_state,
        protocol_type=CONSUMER,
        assignor=group.assignor_name,
        coordinator=coordinator,
        members=_sorted(_consumer_member(member) for member in group.members),
        epoch=group.group_epoch,
    )


def _consumer_member(member: ConsumerGroupDescribeResponse.Group.Member) -> Member:
    return Member(
        member_id=member.member_id,
        instance_id=member.instance_id,
        client_id=member.client_id,
        host=_host(member.client_host),
        protocol=_MEMBER_TYPES.get(member.member_type, ""),
        assigned=_by_topic(member.assignment),
        target=_by_topic(member.target_assignment),
        epoch=member.member_epoch,
    )


def _by_topic(assignment: Assignment) -> Assigned:
    return {part.topic_name: sorted(part.partitions) for part in assignment.topic_partitions}


def _classic_group(group: DescribeGroupsResponse.Group, coordinator: Node) -> Described:
    is_of_consumers = group.protocol_type == CONSUMER
    return Described(
        group_id=group.group_id,
        type=CLASSIC,
        state=group.group_state,
        protocol_type=group.protocol_type,
        assignor=group.protocol_data,
        coordinator=coordinator,
        members=_sorted(_classic_member(member, is_of_consumers) for member in group.members),
    )


def _classic_member(member: DescribeGroupsResponse.Group.Member, is_of_consumers: bool) -> Member:
    return Member(
        member_id=member.member_id,
        instance_id=member.group_instance_id,
        client_id=member.client_id,
        host=_host(member.client_host),
        protocol=CLASSIC,
        assigned=_read(member.member_assignment) if is_of_consumers else None,
    )


def _read(assignment: bytes) -> Assigned | None:
    """
    What a leader has written for a member. It begins with a version; newer ones only add behind what is known.
    """
    if not assignment:
        return {}
    version = int.from_bytes(assignment[:_VERSION_BYTES], "big")
    try:
        told, _ = decoder(ConsumerProtocolAssignment, min(version, _NEWEST_ASSIGNMENT))(assignment, _VERSION_BYTES)
    except Malformed:
        return None
    return {part.topic: sorted(part.partitions) for part in told.assigned_partitions}


def _host(told: str) -> str:
    """
    The address, without the slash that Java puts before it.
    """
    return told.rpartition("/")[2]
