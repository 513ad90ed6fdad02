"""
Heartbeats that no member can mean.
"""

from collections.abc import Sequence

from kgateway.groups.consumer.member import AWAY, JOINING, LEAVING
from kgateway.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kgateway.wire.errors import ErrorCode, KafkaError

_MEMBER_MAKES_ITS_ID = 1  # from this version on (KIP-1082)
_NO_TIMEOUT = -1


def check_heartbeat(request: ConsumerGroupHeartbeatRequest, version: int, assignors: Sequence[str]) -> None:
    """
    A KafkaError where the request contradicts itself, or asks for an assignor that is not there.
    """
    epoch = request.member_epoch
    needs_member_id = version >= _MEMBER_MAKES_ITS_ID or epoch > JOINING or epoch == LEAVING
    _demand(not needs_member_id or request.member_id != "", "member_id is empty")
    _demand(request.group_id != "", "group_id is empty")
    _demand(request.instance_id != "", "instance_id is empty")
    _demand(request.rack_id != "", "rack_id is empty")
    _demand(epoch >= AWAY, f"member_epoch is {epoch}")
    if epoch == JOINING:
        _check_join(request)
    if epoch == AWAY:
        _demand(request.instance_id is not None, "only a static member leaves for a while, and instance_id is null")
    if request.server_assignor is not None and request.server_assignor not in assignors:
        reason = f"{request.server_assignor} is none of {', '.join(assignors)}"
        raise KafkaError(ErrorCode.UNSUPPORTED_ASSIGNOR, reason)


def _check_join(request: ConsumerGroupHeartbeatRequest) -> None:
    _demand(request.rebalance_timeout_ms != _NO_TIMEOUT, "who joins must say its rebalance_timeout_ms")
    _demand(request.topic_partitions == [], "who joins owns nothing, and must say so in topic_partitions")
    subscribes = request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None
    _demand(subscribes, "who joins must say what it subscribes to")


def _demand(holds: bool, otherwise: str) -> None:
    if not holds:
        raise KafkaError(ErrorCode.INVALID_REQUEST, otherwise)
