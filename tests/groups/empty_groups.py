"""
Groups whose members have left.
"""

from typing import Any

from kgateway.groups.classic.group import ClassicGroup
from kgateway.groups.classic.requests import JoinRequest, LeavingMember, MemberIdRequired, Protocols
from kgateway.groups.consumer.group import Client, ConsumerGroup
from kgateway.groups.coordinator import GroupCoordinator
from kgateway.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest

_CLIENT = Client("client", "/127.0.0.1", lambda topic: True)


def beginning(group_id: str, **more: Any) -> ConsumerGroupHeartbeatRequest:
    """
    The first heartbeat of a member.
    """
    said: dict[str, Any] = {"member_id": "m", "member_epoch": 0, "rebalance_timeout_ms": 10_000, "topic_partitions": []}
    if "subscribed_topic_regex" not in more:
        said["subscribed_topic_names"] = ["t"]
    return ConsumerGroupHeartbeatRequest(group_id=group_id, **{**said, **more})


def empty_classic(groups: GroupCoordinator, group_id: str) -> ClassicGroup:
    """
    A group whose only member left as soon as it had its id.
    """
    group = groups.classic(group_id, create=True)
    try:
        group.join(
            JoinRequest(
                member_id="",
                client_id="client",
                client_host="/127.0.0.1",
                session_timeout_ms=10_000,
                rebalance_timeout_ms=10_000,
                protocol_type="consumer",
                protocols=Protocols([("range", b"")]),
                takes_member_id=True,
                can_skip_assignment=True,
            )
        )
    except MemberIdRequired as told:
        group.leave([LeavingMember(told.member_id)])
    return group


def empty_consumer(groups: GroupCoordinator, group_id: str) -> ConsumerGroup:
    """
    A group whose only member has left.
    """
    group = groups.consumer(group_id, create=True)
    for epoch in (0, -1):
        group.heartbeat(beginning(group_id, member_epoch=epoch), _CLIENT)
    return group
