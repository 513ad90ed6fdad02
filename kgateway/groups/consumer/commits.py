"""
Who may commit and fetch the offsets of a consumer group: members in their own epoch.

A member that has moved on may still commit what it sent in an epoch before, of partitions that it owned by then
(KIP-1251).
"""

from functools import partial

from kgateway.groups.consumer.member import Progress
from kgateway.groups.consumer.state import GroupState
from kgateway.groups.group import NO_GENERATION, NO_MEMBER, PartitionCheck
from kgateway.wire.errors import ErrorCode, KafkaError
from kgateway.wire.uuids import Uuid


def check_commit(
    state: GroupState, member_id: str, instance_id: str | None, epoch: int, *, transactional: bool
) -> PartitionCheck | None:
    """
    A KafkaError where who says so may commit nothing; else what is to be asked for each partition, if anything.
    """
    anonymous = transactional and epoch == NO_GENERATION and member_id == NO_MEMBER and instance_id is None
    if anonymous or (epoch < 0 and not state.profiles):
        return None
    current = _progress_of(state, member_id).epoch
    if epoch > current:
        raise _stale(state, member_id, f"the commit is of epoch {epoch}, and it is in {current}")
    return None if epoch == current else partial(_check_partition, state, member_id, epoch)


def check_knows_epochs(state: GroupState, member_id: str) -> None:
    """
    Refuse a member that speaks of a generation, where it has an epoch.
    """
    profile = state.profiles.get(member_id)
    if profile and profile.classic is None:
        reason = f"{member_id} speaks the consumer protocol, and commits with OffsetCommit before version 9"
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, reason)


def _check_partition(state: GroupState, member_id: str, epoch: int, topic_id: Uuid, index: int) -> None:
    progress = state.progress_of(member_id)
    for owned in (progress.assigned, progress.revoking):
        since = owned.get(topic_id, {}).get(index)
        if since is not None and since <= epoch:
            return
    reason = f"in epoch {epoch} it did not own partition {index} of {topic_id}, or it owns it no more"
    raise _stale(state, member_id, reason)


def check_fetch(state: GroupState, member_id: str | None, epoch: int) -> None:
    """
    Members fetch in their own epoch; who names no member may always.
    """
    if member_id is None and epoch < 0:
        return
    member_id = member_id or NO_MEMBER
    progress = _progress_of(state, member_id)
    if not progress.may_be_in(epoch):
        raise _stale(state, member_id, f"it says epoch {epoch}, and is in {progress.epoch}")


def _progress_of(state: GroupState, member_id: str) -> Progress:
    if member_id not in state.profiles:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"{state.group_id} has no member {member_id!r}")
    return state.progress_of(member_id)


def _stale(state: GroupState, member_id: str, reason: str) -> KafkaError:
    classic = state.profiles[member_id].classic is not None
    code = ErrorCode.ILLEGAL_GENERATION if classic else ErrorCode.STALE_MEMBER_EPOCH
    return KafkaError(code, f"{member_id}: {reason}")
