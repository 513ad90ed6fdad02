"""
Lists, describes and deletes groups.
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
from kgateway.wire.errors import ErrorCode, KafkaError, Malformed

CLASSIC, CONSUMER = "classic", "consumer"
TYPES = (CLASSIC, CONSUMER, "share", "streams")
Assigned = dict[str, list[int]]  # the partitions of each topic

# Whether a group exists is a question, and no mistake that `kgateway why` need show: v6 of DescribeGroups makes it one.
_WITHOUT_ERROR = 5
_DEAD = "Dead"  # the state of a group that does not exist
_VERSION_BYTES = 2
_NEWEST_ASSIGNMENT = ConsumerProtocolAssignment.__spec__.versions[-1]
_MEMBER_TYPES = {0: CLASSIC, 1: CONSUMER}
# A consumer group cannot have the empty id, but offsets can be committed for it.
_NO_CONSUMER_GROUP = (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION, ErrorCode.INVALID_GROUP_ID)


@dataclass(frozen=True, slots=True)
class GroupListing:
    """
    A listed group; old servers do not return its type and state.
    """

    group_id: str
    type: str
    state: str
    protocol_type: str
    coordinator: Node


@dataclass(frozen=True, slots=True)
class MemberDescription:
    """
    A member of a group. Its assignment can be read only if the group uses the consumer protocol.
    """

    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    protocol: str
    assigned: Assigned | None
    target: Assigned | None = None  # the target assignment, of the consumer protocol only
    epoch: int | None = None


@dataclass(frozen=True, slots=True)
class GroupDescription:
    group_id: str
    type: str
    state: str
    protocol_type: str
    assignor: str
    coordinator: Node
    members: list[MemberDescription]
    epoch: int | None = None


def list_groups(cluster: Cluster) -> list[GroupListing]:
    """
    The groups of all servers, sorted by id.
    """
    return sorted((group for node in cluster.nodes() for group in _of(node, cluster)), key=lambda group: group.group_id)


def _of(node: Node, cluster: Cluster) -> Iterator[GroupListing]:
    answer = cluster.connection(node).ask(ListGroupsRequest(), ListGroupsResponse)
    refuse(answer.error_code)
    for group in answer.groups:
        yield GroupListing(group.group_id, group.group_type, group.group_state, group.protocol_type, node)


def describe_group(cluster: Cluster, group_id: str) -> GroupDescription:
    """
    The group; GROUP_ID_NOT_FOUND if there is none of a type that can be described here.
    """
    coordinator = cluster.coordinator(group_id)
    connection = cluster.connection(coordinator)
    if connection.serves(ConsumerGroupDescribeRequest):
        request = ConsumerGroupDescribeRequest(group_ids=[group_id], include_authorized_operations=False)
        [group] = connection.ask(request, ConsumerGroupDescribeResponse).groups
        if group.error_code not in _NO_CONSUMER_GROUP:
            refuse(group.error_code, group.error_message)
            return _consumer_group(group, coordinator)
    asked = DescribeGroupsRequest(groups=[group_id])
    [classic] = connection.ask(asked, DescribeGroupsResponse, newest=_WITHOUT_ERROR).groups
    if classic.group_state == _DEAD:
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"there is no group {group_id}")
    refuse(classic.error_code, classic.error_message)
    return _classic_group(classic, coordinator)


def delete_group(cluster: Cluster, group_id: str) -> None:
    connection = cluster.connection(cluster.coordinator(group_id))
    [result] = connection.ask(DeleteGroupsRequest(groups_names=[group_id]), DeleteGroupsResponse).results
    refuse(result.error_code)


def _sorted(members: Iterable[MemberDescription]) -> list[MemberDescription]:
    return sorted(members, key=lambda member: (member.client_id, member.member_id))


def _consumer_group(group: ConsumerGroupDescribeResponse.Group, coordinator: Node) -> GroupDescription:
    return GroupDescription(
        group_id=group.group_id,
        type=CONSUMER,
        state=group.group_state,
        protocol_type=CONSUMER,
        assignor=group.assignor_name,
        coordinator=coordinator,
        members=_sorted(_consumer_member(member) for member in group.members),
        epoch=group.group_epoch,
    )


def _consumer_member(member: ConsumerGroupDescribeResponse.Group.Member) -> MemberDescription:
    return MemberDescription(
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


def _classic_group(group: DescribeGroupsResponse.Group, coordinator: Node) -> GroupDescription:
    is_of_consumers = group.protocol_type == CONSUMER
    return GroupDescription(
        group_id=group.group_id,
        type=CLASSIC,
        state=group.group_state,
        protocol_type=group.protocol_type,
        assignor=group.protocol_data,
        coordinator=coordinator,
        members=_sorted(_classic_member(member, is_of_consumers) for member in group.members),
    )


def _classic_member(member: DescribeGroupsResponse.Group.Member, is_of_consumers: bool) -> MemberDescription:
    return MemberDescription(
        member_id=member.member_id,
        instance_id=member.group_instance_id,
        client_id=member.client_id,
        host=_host(member.client_host),
        protocol=CLASSIC,
        assigned=_read(member.member_assignment) if is_of_consumers else None,
    )


def _read(assignment: bytes) -> Assigned | None:
    """
    Decode the assignment that a leader wrote for a member. It begins with a version; newer versions only append fields.
    """
    if not assignment:
        return {}
    version = int.from_bytes(assignment[:_VERSION_BYTES], "big")
    try:
        decoded, _ = decoder(ConsumerProtocolAssignment, min(version, _NEWEST_ASSIGNMENT))(assignment, _VERSION_BYTES)
    except Malformed:
        return None
    return {part.topic: sorted(part.partitions) for part in decoded.assigned_partitions}


def _host(address: str) -> str:
    """
    The address, without the slash that Java puts in front of it.
    """
    return address.rpartition("/")[2]
