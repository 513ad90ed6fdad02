"""
The changes of a consumer group: members join, say something new, reconcile, and leave.

A change is a function of a ChangeSet. It returns its answer, and what to do once it is written.
"""

from collections.abc import Callable, Collection
from functools import partial
from typing import TypeVar

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from kgateway.cluster.view import ClusterView
from kgateway.coordination.topic_patterns import MayDescribe, check_pattern
from kgateway.groups.assignors.assignment import Assignment
from kgateway.groups.consumer.config import GroupConfig
from kgateway.groups.consumer.journal import ChangeJournal, ChangeSet
from kgateway.groups.consumer.member import Profile
from kgateway.groups.consumer.reconciliation import Goal, next_progress, unwritten_step
from kgateway.groups.consumer.state import ConsumerGroupState
from kgateway.groups.consumer.target import TargetPlanner
from kgateway.groups.consumer.timers import MemberTimers
from kgateway.groups.records import Write
from kgateway.log_messages import MEMBER_NOT_REMOVED
from kgateway.wire.errors import KafkaError

A = TypeVar("A")
Change = Callable[[ChangeSet], tuple[A, Callable[[], None]]]
# Converts the group to a classic one, if that is allowed, when all but these members speak the classic protocol.
Downgrade = Callable[[Collection[str]], bool]

_NEW = Profile()


class Membership:
    _log = Logger()

    def __init__(
        self,
        state: ConsumerGroupState,
        *,
        clock: IReactorTime,
        now_ms: Callable[[], int],
        write: Write,
        view: Callable[[], ClusterView],
        config: Callable[[], GroupConfig],
        downgrade: Downgrade,
    ) -> None:
        self.state = state
        self._config = config
        self.view = view
        self.timers = MemberTimers(state, clock, self._expel)
        self.planner = TargetPlanner(state, view, now_ms)
        self.empty_since_ms: int | None = None
        self._journal = ChangeJournal(write, self._undone)
        self._now_ms = now_ms
        self._downgrade = downgrade

    @property
    def config(self) -> GroupConfig:
        return self._config()

    def make(self, change: Change[A]) -> A | Deferred[A]:
        """
        Make a change, write it, and do what is to be done then. A change that is refused leaves no trace.
        """
        changes = ChangeSet(self.state)
        try:
            answer, afterwards = change(changes)
            answered = self._journal.commit(changes, answer)
        except BaseException:
            changes.undo()
            self.planner.forget()
            raise
        afterwards()
        return answered

    def update_profile(
        self,
        changes: ChangeSet,
        member_id: str,
        profile: Profile,
        config: GroupConfig,
        may_describe: MayDescribe | None,
    ) -> bool:
        """
        Store what a member says of itself, and plan. Returns whether its subscription has changed.
        """
        state = self.state
        before = state.profiles.get(member_id, _NEW)
        if profile.pattern and profile.pattern not in state.patterns:
            check_pattern(profile.pattern)
        if profile is not before:
            changes.set_profile(member_id, profile)
        self._delete_unused_matches(changes)
        resubscribed = before.topic_names != profile.topic_names or before.pattern != profile.pattern
        self.planner.refresh(changes, config, may_describe, resubscribed=resubscribed)
        return resubscribed

    def plan(self, changes: ChangeSet) -> tuple[None, Callable[[], None]]:
        self.planner.refresh(changes, self.config, None, resubscribed=False)
        return None, lambda: None

    def reconcile(self, changes: ChangeSet, member_id: str, owned: Assignment | None, *, resubscribed: bool) -> None:
        state = self.state
        progress, epoch = state.progress_of(member_id), state.target_metadata_now.epoch
        if progress.reached(epoch) and not resubscribed:
            return
        topics = self.planner.topic_ids(state.profiles[member_id])
        step = unwritten_step(state, member_id, topics)
        if step:
            changes.set_unwritten(member_id, step)
            return
        goal = Goal(epoch, state.target_of(member_id), topics)
        after = next_progress(progress, goal, owned, state.is_free_for(member_id), resubscribed=resubscribed)
        changes.set_progress(member_id, after)

    def remove(self, member_ids: Collection[str], answer: A) -> A | Deferred[A]:
        """
        Remove members. Their partitions are assigned to others at the next heartbeat of another member.
        """
        if self._only_classic_without(member_ids) and self._downgrade(member_ids):
            return answer
        return self.make(partial(self._removal, member_ids, answer))

    def member_joined(self, member_id: str, replaced: str | None, protocol: str) -> None:
        self._log.info(
            "group {group}: member {member} joined with the {protocol} protocol{replacing}",
            group=self.state.group_id,
            member=member_id,
            protocol=protocol,
            replacing=f", in place of {replaced}" if replaced else "",
        )
        if replaced:
            self.timers.cancel_all(replaced)

    def downgrade_if_due(self) -> None:
        """
        Convert the group if its last member of the consumer protocol has become a classic one.
        """
        if self._only_classic_without(()):
            self._downgrade(())

    def stop(self, error: KafkaError) -> None:
        self.timers.stop()
        self._journal.stop(error)

    def _only_classic_without(self, member_ids: Collection[str]) -> bool:
        """
        Whether there are other members than these, and all of them speak the classic protocol.
        """
        state = self.state
        classic = sum(state.profiles[member_id].classic is not None for member_id in member_ids)
        left = len(state.profiles) - len(member_ids)
        return 0 < left == state.classic_count - classic

    def _removal(self, member_ids: Collection[str], answer: A, changes: ChangeSet) -> tuple[A, Callable[[], None]]:
        for member_id in member_ids:
            changes.drop_member(member_id)
        self._delete_unused_matches(changes)
        self.planner.refresh_epoch(changes, always=True)
        return answer, partial(self._removed, member_ids)

    def _removed(self, member_ids: Collection[str]) -> None:
        for member_id in member_ids:
            self.timers.cancel_all(member_id)
        if not self.state.profiles:
            self.empty_since_ms = self._now_ms()
            self.planner.forget()  # or it would hold on to the view until somebody joins

    def _delete_unused_matches(self, changes: ChangeSet) -> None:
        state = self.state
        if len(state.matches) > len(state.patterns):
            for pattern in state.matches.keys() - state.patterns.keys():
                changes.set_matches(pattern, None)

    def _expel(self, member_id: str, reason: str) -> None:
        if member_id not in self.state.profiles:
            return
        group_id = self.state.group_id
        self._log.info("group {group}: member {member} {reason}", group=group_id, member=member_id, reason=reason)
        try:
            written = self.remove([member_id], None)
        except KafkaError as error:
            self._log.warn(MEMBER_NOT_REMOVED, member=member_id, error=error)
            self.timers.retry_expulsion(member_id, reason)
        else:
            if written is not None:
                written.addErrback(lambda _: None)  # it is undone and logged, and the member has a session again

    def _undone(self) -> None:
        """
        Members that were removed may be back, and have sessions again.
        """
        self.planner.forget()
        self.timers.begin(self.config.session_timeout_ms)
