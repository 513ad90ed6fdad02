"""
How a member's words find its group, which may be one of the consumer protocol by now.
"""

from collections.abc import Sequence
from typing import Protocol

from twisted.internet.defer import CancelledError, Deferred
from twisted.python.failure import Failure

from kgateway.context import Context
from kgateway.groups.classic.exchange import Join, Joined, Leave, Sync, Synced
from kgateway.groups.classic.group import ClassicGroup
from kgateway.groups.consumer.classic_members import ClassicMembers
from kgateway.groups.consumer.group import ConsumerGroup
from kgateway.groups.group import Group
from kgateway.groups.groups import Groups
from kgateway.wire.errors import ErrorCode, KafkaError


class Speaker(Protocol):
    """
    What understands the classic protocol: a refusal is a KafkaError, an answer may come later.
    """

    def join(self, asked: Join) -> Joined | Deferred[Joined]: ...

    def sync(self, asked: Sync) -> Synced | Deferred[Synced]: ...

    def heartbeat(self, member_id: str, instance_id: str | None, generation: int) -> None: ...

    def leave(self, leavers: Sequence[Leave]) -> list[ErrorCode]: ...


def group_of_member(context: Context, group_id: str, *, is_new: bool = False) -> Speaker:
    """
    The group that a client says to be a member of. It is made for a new member alone: nobody else can be in a group
    that is not there.
    """
    if not group_id:
        raise KafkaError(ErrorCode.INVALID_GROUP_ID, "the group id is empty")
    groups = context.service(Groups)
    try:
        if is_new:
            return groups.classic(group_id, create=True)
        return _speaker(groups.find(group_id), context)
    except KafkaError as error:
        if error.code is ErrorCode.INCONSISTENT_GROUP_PROTOCOL:
            return _speaker(groups.find(group_id), context)
        if error.code is ErrorCode.GROUP_ID_NOT_FOUND:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, error.message) from None
        raise


def why_not(failure: Failure) -> KafkaError:
    """
    What is told to a member that has waited in vain; its wait is cut short where the gateway stops.
    """
    if failure.check(CancelledError):
        return KafkaError(ErrorCode.NOT_COORDINATOR, "the gateway stops")
    failure.trap(KafkaError)
    error = failure.value
    assert isinstance(error, KafkaError)
    return error


def _speaker(group: Group, context: Context) -> Speaker:
    if isinstance(group, ClassicGroup):
        return group
    if isinstance(group, ConsumerGroup) and not group.is_empty:
        return ClassicMembers(group, context.settings)
    raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"{group.group_id} has no members")
