"""
How a member gets to its target, one heartbeat after another.

A partition has one owner at a time: a member that is to lose one keeps it, as `revoking`, until the member has reported
that it no longer owns it. A member that is to get the partition waits until it has no owner.

One step is not written. A member that has all of its target already moves on to the epoch of the next one, and nothing
else of it changes; most members do so in most epochs. Its row would say nothing but that epoch, so none is written: the
epoch in a row is the oldest in which its member may be. A gateway that loads the group accepts any epoch from there to
the newest that is possible, and learns from the member's next heartbeat which one it is. A classic member hears of its
epoch only as it joins, and commits in no other: all of its steps are written.
"""

from collections.abc import Callable, Mapping, Set
from dataclasses import replace
from typing import NamedTuple

from kgateway.groups.assignors.assignment import OWNS_NOTHING, Assignment, Owned, are_same, overlaps
from kgateway.groups.consumer.member import JOINING, MemberState, Profile, Progress
from kgateway.groups.consumer.state import ConsumerGroupState
from kgateway.wire.errors import ErrorCode, KafkaError
from kgateway.wire.uuids import Uuid

IsFree = Callable[[Uuid, int], bool]
_NONE: Mapping[int, int] = {}


class Goal(NamedTuple):
    """
    The target of a member, its epoch, and the topics that the member subscribes to.
    """

    epoch: int
    target: Assignment
    topics: frozenset[Uuid]


def next_progress(
    progress: Progress, goal: Goal, reported: Assignment | None, is_free: IsFree, *, resubscribed: bool
) -> Progress:
    """
    The next step of a member. `is_free` tells whether no other member owns a partition.
    """
    step = _Step(progress, goal, reported, is_free)
    if progress.state is MemberState.UNKNOWN:
        return step.from_unknown_state()
    waiting = progress.state is MemberState.UNREVOKED_PARTITIONS and step.still_owns(progress.revoking)
    if waiting or progress.reached(goal.epoch):
        return step.without_unsubscribed() if resubscribed else progress
    return step.towards_target(progress.epoch)


class _Step(NamedTuple):
    progress: Progress
    goal: Goal
    reported: Assignment | None  # `None` if it did not report it
    is_free: IsFree

    def still_owns(self, revoking: Owned) -> bool:
        return self.reported is None or overlaps(self.reported, revoking)

    def from_unknown_state(self) -> Progress:
        if self.reported is None or self.reported:
            reason = "this server does not know its state; it must join again"
            raise KafkaError(ErrorCode.FENCED_MEMBER_EPOCH, reason)
        return self.towards_target(self.goal.epoch)

    def without_unsubscribed(self) -> Progress:
        """
        Revoke the topics that the member no longer subscribes to, without waiting for the next target.
        """
        progress = self.progress
        kept = {topic_id: owned for topic_id, owned in progress.assigned.items() if topic_id in self.goal.topics}
        if len(kept) == len(progress.assigned):
            return progress
        revoking = {topic_id: dict(owned) for topic_id, owned in progress.revoking.items()}
        for topic_id in progress.assigned.keys() - kept.keys():
            revoking.setdefault(topic_id, {}).update(progress.assigned[topic_id])
        if self.still_owns(revoking):
            return self._progress_at(progress.epoch, MemberState.UNREVOKED_PARTITIONS, kept, revoking)
        return self._progress_at(progress.epoch, progress.state, kept, progress.revoking)

    def towards_target(self, epoch: int) -> Progress:
        """
        First revoke what is not in the target, then take what is free.
        """
        kept: dict[Uuid, dict[int, int]] = {}
        revoking: dict[Uuid, dict[int, int]] = {}
        gained: dict[Uuid, dict[int, int]] = {}
        unreleased = False
        for topic_id in self.goal.target.keys() | self.progress.assigned.keys():
            target = self.goal.target.get(topic_id, frozenset()) if topic_id in self.goal.topics else frozenset()
            owned = self.progress.assigned.get(topic_id, _NONE)
            if target.issuperset(owned):
                lost: dict[int, int] = {}
            else:
                lost = {index: since for index, since in owned.items() if index not in target}
            mine = {index: since for index, since in owned.items() if index not in lost}
            wanted = [index for index in target if index not in owned]
            free = {index: self.goal.epoch for index in wanted if self.is_free(topic_id, index)}
            unreleased = unreleased or len(free) < len(wanted)
            for part, found in ((kept, mine), (revoking, lost), (gained, free)):
                if found:
                    part[topic_id] = found
        if revoking and self.still_owns(revoking):
            return self._progress_at(epoch, MemberState.UNREVOKED_PARTITIONS, kept, revoking)
        for topic_id, found in gained.items():
            kept[topic_id] = kept.get(topic_id, {}) | found
        state = MemberState.UNRELEASED_PARTITIONS if unreleased else MemberState.STABLE
        return self._progress_at(self.goal.epoch, state, kept, OWNS_NOTHING)

    def _progress_at(self, epoch: int, state: MemberState, assigned: Owned, revoking: Owned) -> Progress:
        return Progress(
            epoch=epoch, previous_epoch=self.progress.epoch, state=state, assigned=assigned, revoking=revoking
        )


def unwritten_step(state: ConsumerGroupState, member_id: str, topics: Set[Uuid]) -> Progress | None:
    """
    The step of a member into the epoch of its target. `None` if no action is needed, or more than that.
    """
    progress, target, epoch = state.progress_of(member_id), state.target_of(member_id), state.target_metadata_now.epoch
    is_due = progress.epoch < epoch and _may_step(state.profiles[member_id], progress)
    if is_due and target.keys() <= topics and are_same(target, progress.assigned):
        return Progress(epoch=epoch, previous_epoch=progress.epoch, assigned=progress.assigned, revoking=OWNS_NOTHING)
    return None


def assume_unwritten_steps(state: ConsumerGroupState) -> None:
    """
    After a replay, put members into the newest epoch that they may have reached. A member without the last target was
    in the epoch before it at most.
    """
    newest = state.target_metadata_now.epoch
    for member_id, progress in list(state.progress.items()):
        last = newest if are_same(state.target_of(member_id), progress.assigned) else newest - 1
        if _may_step(state.profiles[member_id], progress) and last > progress.epoch:
            state.set_unwritten(member_id, replace(progress, epoch=last, oldest_epoch=progress.epoch))


def _may_step(profile: Profile, progress: Progress) -> bool:
    is_one_of_the_group = progress.epoch > JOINING
    return is_one_of_the_group and progress.state is MemberState.STABLE and profile.classic is None
