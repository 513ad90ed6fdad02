"""
How a member comes to its target, one heartbeat after another.

A partition has one owner at a time: whoever is to lose one keeps it, as `revoking`, until it has said that it owns it
no more; whoever is to get it waits until it has no owner.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from kgateway.groups.consumer.assignment import OWNS_NOTHING, Assignment, Owned, overlap
from kgateway.groups.consumer.member import MemberState, Progress
from kgateway.wire.errors import ErrorCode, KafkaError
from kgateway.wire.uuids import Uuid

IsFree = Callable[[Uuid, int], bool]
_NONE: Mapping[int, int] = {}


class Goal(NamedTuple):
    """
    Where a member is to come, and what it subscribes to by now.
    """

    epoch: int
    target: Assignment
    topics: frozenset[Uuid]


def reconcile(
    progress: Progress, goal: Goal, says_it_owns: Assignment | None, is_free: IsFree, *, resubscribed: bool
) -> Progress:
    """
    The next step of a member. `is_free` tells of partitions that no other member owns.
    """
    step = _Step(progress, goal, says_it_owns, is_free)
    if progress.state is MemberState.UNKNOWN:
        return step.out_of_the_unknown()
    waiting = progress.state is MemberState.UNREVOKED_PARTITIONS and step.still_owns(progress.revoking)
    if waiting or progress.reached(goal.epoch):
        return step.without_unsubscribed() if resubscribed else progress
    return step.on(progress.epoch)


class _Step(NamedTuple):
    progress: Progress
    goal: Goal
    says_it_owns: Assignment | None  # `None` where it did not say
    is_free: IsFree

    def still_owns(self, revoking: Owned) -> bool:
        """
        Whether the member may own any of these yet.
        """
        return self.says_it_owns is None or overlap(self.says_it_owns, revoking)

    def out_of_the_unknown(self) -> Progress:
        if self.says_it_owns is None or self.says_it_owns:
            reason = "its state is of a kind that this server does not know; it is to join again"
            raise KafkaError(ErrorCode.FENCED_MEMBER_EPOCH, reason)
        return self.on(self.goal.epoch)

    def without_unsubscribed(self) -> Progress:
        """
        Let go what the member subscribes to no more, now: it does not wait for the next target.
        """
        progress = self.progress
        kept = {topic_id: owned for topic_id, owned in progress.assigned.items() if topic_id in self.goal.topics}
        if len(kept) == len(progress.assigned):
            return progress
        revoking = {topic_id: dict(owned) for topic_id, owned in progress.revoking.items()}
        for topic_id in progress.assigned.keys() - kept.keys():
            revoking.setdefault(topic_id, {}).update(progress.assigned[topic_id])
        if self.still_owns(revoking):
            return self._at(progress.epoch, MemberState.UNREVOKED_PARTITIONS, kept, revoking)
        return self._at(progress.epoch, progress.state, kept, progress.revoking)

    def on(self, epoch: int) -> Progress:
        """
        Towards the target: first all must be let go that is not in it, then what is free is taken.
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
            for place, found in ((kept, mine), (revoking, lost), (gained, free)):
                if found:
                    place[topic_id] = found
        if revoking and self.still_owns(revoking):
            return self._at(epoch, MemberState.UNREVOKED_PARTITIONS, kept, revoking)
        for topic_id, found in gained.items():
            kept[topic_id] = kept.get(topic_id, {}) | found
        state = MemberState.UNRELEASED_PARTITIONS if unreleased else MemberState.STABLE
        return self._at(self.goal.epoch, state, kept, OWNS_NOTHING)

    def _at(self, epoch: int, state: MemberState, assigned: Owned, revoking: Owned) -> Progress:
        return Progress(
            epoch=epoch,
            previous_epoch=self.progress.epoch,
            state=state,
            assigned=assigned,
            revoking=revoking,
        )
