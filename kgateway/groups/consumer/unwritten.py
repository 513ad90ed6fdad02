"""
The one step of a member that is not written.

A member that has all of its target already gets into the epoch of the next one, and nothing else of it changes; most
members do so in most epochs. Its row would say nothing but that epoch, so none is written: what a row says is the
oldest epoch in which its member may be. Whoever loads the group lets the member be in any from there to the newest in
which it can be, and learns from its next heartbeat which one it is.

A classic member hears of its epoch only as it joins, and commits in no other: of that all is written.
"""

from collections.abc import Set
from dataclasses import replace

from kgateway.groups.consumer.assignment import OWNS_NOTHING, is_all_of
from kgateway.groups.consumer.member import JOINING, MemberState, Profile, Progress
from kgateway.groups.consumer.state import GroupState
from kgateway.wire.uuids import Uuid


def step_of(state: GroupState, member_id: str, topics: Set[Uuid]) -> Progress | None:
    """
    The step of a member, which subscribes to these topics, into the epoch of its target; none where more than that has
    to be done, or nothing.
    """
    progress, target, epoch = state.progress_of(member_id), state.target_of(member_id), state.targets_now.epoch
    is_due = progress.epoch < epoch and _may_step(state.profiles[member_id], progress)
    if is_due and target.keys() <= topics and is_all_of(target, progress.assigned):
        return Progress(epoch=epoch, previous_epoch=progress.epoch, assigned=progress.assigned, revoking=OWNS_NOTHING)
    return None


def catch_up(state: GroupState) -> None:
    """
    After a replay: members may have come further than their rows say. Whoever has not the last target was in the epoch
    before it at most.
    """
    newest = state.targets_now.epoch
    for member_id, progress in list(state.progress.items()):
        last = newest if is_all_of(state.target_of(member_id), progress.assigned) else newest - 1
        if _may_step(state.profiles[member_id], progress) and last > progress.epoch:
            state.set_step(member_id, replace(progress, epoch=last, oldest_epoch=progress.epoch))


def _may_step(profile: Profile, progress: Progress) -> bool:
    is_one_of_the_group = progress.epoch > JOINING
    return is_one_of_the_group and progress.state is MemberState.STABLE and profile.classic is None
