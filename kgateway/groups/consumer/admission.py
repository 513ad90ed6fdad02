"""
Who may speak for which member.
"""

from kgateway.groups.consumer.assignment import Assignment, within
from kgateway.groups.consumer.draft import Draft
from kgateway.groups.consumer.member import AWAY, Progress
from kgateway.groups.consumer.state import GroupState
from kgateway.wire.errors import ErrorCode, KafkaError


def check_room(state: GroupState, member_id: str, max_size: int) -> None:
    """
    A full group takes nobody who is not in it.
    """
    if member_id not in state.profiles and len(state.profiles) >= max_size:
        raise KafkaError(
            ErrorCode.GROUP_MAX_SIZE_REACHED, f"{state.group_id} has {max_size} members, and may have no more"
        )


def known(state: GroupState, member_id: str, instance_id: str | None) -> str:
    """
    The id of the member that says so.
    """
    if instance_id is not None:
        return _known_static(state, member_id, instance_id)
    if member_id not in state.profiles:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"{state.group_id} has no member {member_id}")
    return member_id


def _known_static(state: GroupState, member_id: str, instance_id: str) -> str:
    holder = state.static.get(instance_id)
    if holder is None:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"{state.group_id} has no member with instance id {instance_id}")
    if holder != member_id:
        raise KafkaError(ErrorCode.FENCED_INSTANCE_ID, f"{instance_id} is {holder} now, and not {member_id}")
    return holder


def check_epoch(progress: Progress, epoch: int, says_it_owns: Assignment | None) -> None:
    """
    Fence a member that is elsewhere than the group thinks. One that is an epoch behind may have missed an answer, if
    it owns nothing that it should not.
    """
    if progress.may_be_in(epoch):
        return
    behind = epoch == progress.previous_epoch and says_it_owns is not None and within(says_it_owns, progress.assigned)
    if epoch > progress.epoch or not behind:
        reason = f"it is in epoch {epoch} and should be in {progress.epoch}; it is to join again, owning nothing"
        raise KafkaError(ErrorCode.FENCED_MEMBER_EPOCH, reason)


def take_place(draft: Draft, member_id: str, instance_id: str | None, *, classic: bool) -> str | None:
    """
    Let a joining member be in the group, and a static one have what its predecessor had; the predecessor's id.

    One that joins once more under the id that it has did not hear the first answer.
    """
    state = draft.state
    holder = state.static.get(instance_id) if instance_id is not None else None
    if holder is None or holder == member_id:
        return None
    progress = state.progress_of(holder)
    both_new = not classic and state.profiles[holder].classic is None
    if both_new and progress.epoch != AWAY:
        raise KafkaError(ErrorCode.UNRELEASED_INSTANCE_ID, f"{instance_id} is {holder}, which has not left")
    profile, target = state.profiles[holder], state.targets.get(holder)
    draft.drop_member(holder)
    draft.set_profile(member_id, profile)
    draft.set_target(member_id, target)
    draft.set_progress(member_id, progress.inherited())
    return holder
