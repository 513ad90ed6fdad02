"""
Checks of members' requests: which heartbeats contradict themselves, which client may speak for a member, and which may
commit and fetch offsets.

Members commit in their own epoch. A member that has moved on may still commit what it sent in an earlier epoch, of
partitions that it owned by then (KIP-1251).
"""

from functools import partial
from typing import NoReturn

from kgateway.groups.assignors.assignment import Assignment, is_subset
from kgateway.groups.consumer.journal import ChangeSet
from kgateway.groups.consumer.member import AWAY, JOINING, LEAVING, Progress
from kgateway.groups.consumer.state import ConsumerGroupState
from kgateway.groups.group import NO_GENERATION, NO_MEMBER, PartitionCheck
from kgateway.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kgateway.plurals import counted
from kgateway.wire.errors import ErrorCode, KafkaError
from kgateway.wire.uuids import Uuid

_MEMBER_MAKES_ITS_ID = 1  # since this version (KIP-1082)
_NO_TIMEOUT = -1


def check_room(state: ConsumerGroupState, member_id: str, max_size: int) -> None:
    if member_id not in state.profiles and len(state.profiles) >= max_size:
        raise KafkaError(
            ErrorCode.GROUP_MAX_SIZE_REACHED,
            f"{state.group_id} has {counted(max_size, 'member')}, which is the maximum",
        )


def find_member(state: ConsumerGroupState, member_id: str, instance_id: str | None) -> str:
    """
    The id of the member; a KafkaError if there is none, or another has its instance id.
    """
    if instance_id is not None:
        return _find_static(state, member_id, instance_id)
    if member_id not in state.profiles:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"{state.group_id} has no member {member_id}")
    return member_id


def _find_static(state: ConsumerGroupState, member_id: str, instance_id: str) -> str:
    holder = state.static.get(instance_id)
    if holder is None:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"{state.group_id} has no member with instance id {instance_id}")
    if holder != member_id:
        raise KafkaError(ErrorCode.FENCED_INSTANCE_ID, f"{instance_id} is {holder} now, not {member_id}")
    return holder


def check_epoch(progress: Progress, epoch: int, reported: Assignment | None) -> None:
    """
    Fence a member that is in another epoch than the group thinks. A member that is one epoch behind may have missed an
    answer, if it owns nothing that it should not.
    """
    if progress.may_be_in(epoch):
        return
    behind = epoch == progress.previous_epoch and reported is not None and is_subset(reported, progress.assigned)
    if epoch > progress.epoch or not behind:
        reason = f"it is in epoch {epoch} but should be in {progress.epoch}; it must join again without any partitions"
        raise KafkaError(ErrorCode.FENCED_MEMBER_EPOCH, reason)


def replace_static_member(changes: ChangeSet, member_id: str, instance_id: str | None, *, classic: bool) -> str | None:
    """
    Let a joining static member take over what its predecessor had. Returns the predecessor's id, if there is one. A
    member that joins again under its own id did not get the first answer.
    """
    state = changes.state
    holder = state.static.get(instance_id) if instance_id is not None else None
    if holder is None or holder == member_id:
        return None
    progress = state.progress_of(holder)
    both_new = not classic and state.profiles[holder].classic is None
    if both_new and progress.epoch != AWAY:
        raise KafkaError(ErrorCode.UNRELEASED_INSTANCE_ID, f"{instance_id} is {holder}, which has not left")
    profile, target = state.profiles[holder], state.targets.get(holder)
    changes.drop_member(holder)
    changes.set_profile(member_id, profile)
    changes.set_target(member_id, target)
    changes.set_progress(member_id, progress.inherited())
    return holder


def check_commit(
    state: ConsumerGroupState, member_id: str, instance_id: str | None, epoch: int, *, transactional: bool
) -> PartitionCheck | None:
    """
    Raise a KafkaError if this member may commit nothing. Returns a check of each partition, if one is needed.
    """
    anonymous = transactional and epoch == NO_GENERATION and member_id == NO_MEMBER and instance_id is None
    if anonymous or (epoch < 0 and not state.profiles):
        return None
    current = _progress_of(state, member_id).epoch
    if epoch > current:
        raise _stale(state, member_id, f"the commit is of epoch {epoch}, but it is in {current}")
    return None if epoch == current else partial(_check_partition, state, member_id, epoch)


def check_knows_epochs(state: ConsumerGroupState, member_id: str) -> None:
    """
    Refuse a member that names a generation although it has an epoch.
    """
    profile = state.profiles.get(member_id)
    if profile and profile.classic is None:
        reason = f"{member_id} uses the consumer protocol, but commits with OffsetCommit before version 9"
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, reason)


def _check_partition(state: ConsumerGroupState, member_id: str, epoch: int, topic_id: Uuid, index: int) -> None:
    progress = state.progress_of(member_id)
    for owned in (progress.assigned, progress.revoking):
        since = owned.get(topic_id, {}).get(index)
        if since is not None and since <= epoch:
            return
    reason = f"it did not own partition {index} of {topic_id} in epoch {epoch}, or no longer owns it"
    raise _stale(state, member_id, reason)


def check_fetch(state: ConsumerGroupState, member_id: str | None, epoch: int) -> None:
    """
    Members fetch in their own epoch. A client that names no member may always fetch.
    """
    if member_id is None and epoch < 0:
        return
    member_id = member_id or NO_MEMBER
    progress = _progress_of(state, member_id)
    if not progress.may_be_in(epoch):
        raise _stale(state, member_id, f"it sent epoch {epoch}, but is in {progress.epoch}")


def _progress_of(state: ConsumerGroupState, member_id: str) -> Progress:
    if member_id not in state.profiles:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"{state.group_id} has no member {member_id!r}")
    return state.progress_of(member_id)


def _stale(state: ConsumerGroupState, member_id: str, reason: str) -> KafkaError:
    classic = state.profiles[member_id].classic is not None
    code = ErrorCode.ILLEGAL_GENERATION if classic else ErrorCode.STALE_MEMBER_EPOCH
    return KafkaError(code, f"{member_id}: {reason}")


def check_heartbeat(request: ConsumerGroupHeartbeatRequest, version: int, assignors: str) -> None:
    """
    Raise a KafkaError if the request contradicts itself, or asks for an assignor that is not in the setting.
    """
    epoch = request.member_epoch
    needs_member_id = version >= _MEMBER_MAKES_ITS_ID or epoch > JOINING or epoch == LEAVING
    if request.member_id == "" and needs_member_id:
        _refuse("member_id is empty")
    if request.group_id == "":
        _refuse("group_id is empty")
    if request.instance_id == "":
        _refuse("instance_id is empty")
    if request.rack_id == "":
        _refuse("rack_id is empty")
    if epoch < AWAY:
        _refuse(f"member_epoch is {epoch}")
    if epoch == JOINING:
        _check_join(request)
    if epoch == AWAY and request.instance_id is None:
        _refuse("only a static member can leave temporarily, but instance_id is null")
    if request.server_assignor is not None and request.server_assignor not in assignors.split(","):
        reason = f"{request.server_assignor} is not one of {', '.join(assignors.split(','))}"
        raise KafkaError(ErrorCode.UNSUPPORTED_ASSIGNOR, reason)


def _check_join(request: ConsumerGroupHeartbeatRequest) -> None:
    if request.rebalance_timeout_ms == _NO_TIMEOUT:
        _refuse("a joining member must send rebalance_timeout_ms")
    if request.topic_partitions != []:
        _refuse("a joining member owns nothing, and must send empty topic_partitions")
    if request.subscribed_topic_names is None and request.subscribed_topic_regex is None:
        _refuse("a joining member must send its subscription")


def _refuse(reason: str) -> NoReturn:
    raise KafkaError(ErrorCode.INVALID_REQUEST, reason)
