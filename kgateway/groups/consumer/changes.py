"""
What becomes of a group when members come, say something new, go on, and go.

A change is a function that works on a draft. It returns its answer, and what is to be done once it is written.
"""

from collections.abc import Callable, Collection
from functools import partial
from typing import TypeVar

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from kgateway.cluster.view import ClusterView
from kgateway.coordinating.patterns import MayDescribe, check_pattern
from kgateway.groups.consumer.assignment import Assignment
from kgateway.groups.consumer.config import GroupConfig
from kgateway.groups.consumer.draft import Draft
from kgateway.groups.consumer.journal import Journal
from kgateway.groups.consumer.lifetimes import Lifetimes
from kgateway.groups.consumer.member import Profile
from kgateway.groups.consumer.planning import Planning
from kgateway.groups.consumer.reconciliation import Goal, reconcile
from kgateway.groups.consumer.state import GroupState
from kgateway.groups.consumer.unwritten import step_of
from kgateway.groups.rows import Write
from kgateway.wire.errors import KafkaError

A = TypeVar("A")
Change = Callable[[Draft], tuple[A, Callable[[], None]]]
# Takes a group of which all but these members speak the classic protocol; makes a classic group of it, if it may.
Downgrade = Callable[[Collection[str]], bool]


class Changes:
    """
    Makes changes of one group.
    """

    _log = Logger()

    def __init__(
        self,
        state: GroupState,
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
        self.lifetimes = Lifetimes(state, clock, self._expel)
        self.planning = Planning(state, view, now_ms)
        self.empty_since_ms: int | None = None
        self._journal = Journal(write, self._undone)
        self._now_ms = now_ms
        self._downgrade = downgrade

    @property
    def config(self) -> GroupConfig:
        return self._config()

    def make(self, change: Change[A]) -> A | Deferred[A]:
        """
        Make a change, write it, and do what is to be done then. Where it is refused, nothing has changed.
        """
        draft = Draft(self.state)
        try:
            answer, afterwards = change(draft)
            answered = self._journal.commit(draft, answer)
        except BaseException:
            draft.undo()
            self.planning.forget()
            raise
        afterwards()
        return answered

    def say(self, draft: Draft, member_id: str, profile: Profile, may_describe: MayDescribe | None) -> bool:
        """
        Note what a member says of itself, and plan; whether it subscribes to something else than before.
        """
        state = self.state
        before = state.profiles.get(member_id, Profile())
        if profile.pattern and profile.pattern not in state.patterns:
            check_pattern(profile.pattern)
        if profile is not before:
            draft.set_profile(member_id, profile)
        self._drop_matches(draft)
        resubscribed = before.topic_names != profile.topic_names or before.pattern != profile.pattern
        self.planning.refresh(draft, self.config, may_describe, resubscribed=resubscribed)
        return resubscribed

    def plan(self, draft: Draft) -> tuple[None, Callable[[], None]]:
        """
        Look whether the group has something new to do.
        """
        self.planning.refresh(draft, self.config, None, resubscribed=False)
        return None, lambda: None

    def go_on(self, draft: Draft, member_id: str, owned: Assignment | None, *, resubscribed: bool) -> None:
        """
        Bring a member nearer to its target.
        """
        state = self.state
        progress, epoch = state.progress_of(member_id), state.targets_now.epoch
        if progress.reached(epoch) and not resubscribed:
            return
        topics = self.planning.topic_ids(state.profiles[member_id])
        step = step_of(state, member_id, topics)
        if step:
            draft.set_step(member_id, step)
            return
        goal = Goal(epoch, state.target_of(member_id), topics)
        after = reconcile(progress, goal, owned, state.is_free_for(member_id), resubscribed=resubscribed)
        draft.set_progress(member_id, after)

    def remove(self, member_ids: Collection[str], answer: A) -> A | Deferred[A]:
        """
        Forget members. Who gets what they had is found out when the next one sends a heartbeat.
        """
        if self._only_classic_without(member_ids) and self._downgrade(member_ids):
            return answer
        return self.make(partial(self._removal, member_ids, answer))

    def note_join(self, member_id: str, replaced: str | None, protocol: str) -> None:
        """
        A member is there, maybe in the place of another.
        """
        self._log.info(
            "group {group}: member {member} joined by the {protocol} protocol{replacing}",
            group=self.state.group_id,
            member=member_id,
            protocol=protocol,
            replacing=f", in place of {replaced}" if replaced else "",
        )
        if replaced:
            self.lifetimes.is_gone(replaced)

    def downgrade_if_due(self) -> None:
        """
        The last member of the consumer protocol may have become one of the classic.
        """
        if self._only_classic_without(()):
            self._downgrade(())

    def stop(self, error: KafkaError) -> None:
        self.lifetimes.stop()
        self._journal.stop(error)

    def _only_classic_without(self, member_ids: Collection[str]) -> bool:
        """
        Whether all that are left then speak the classic protocol, and there are any.
        """
        state = self.state
        classic = sum(state.profiles[member_id].classic is not None for member_id in member_ids)
        left = len(state.profiles) - len(member_ids)
        return 0 < left == state.classic_count - classic

    def _removal(self, member_ids: Collection[str], answer: A, draft: Draft) -> tuple[A, Callable[[], None]]:
        for member_id in member_ids:
            draft.drop_member(member_id)
        self._drop_matches(draft)
        self.planning.refresh_epoch(draft, always=True)
        return answer, partial(self._are_gone, member_ids)

    def _are_gone(self, member_ids: Collection[str]) -> None:
        for member_id in member_ids:
            self.lifetimes.is_gone(member_id)
        if not self.state.profiles:
            self.empty_since_ms = self._now_ms()
            self.planning.forget()  # what it saw last it would hold on to until somebody joins

    def _drop_matches(self, draft: Draft) -> None:
        """
        Expressions to which nobody subscribes any more are forgotten.
        """
        state = self.state
        if len(state.matches) > len(state.patterns):
            for pattern in state.matches.keys() - state.patterns.keys():
                draft.set_matches(pattern, None)

    def _expel(self, member_id: str, reason: str) -> None:
        """
        Remove a member that has missed a deadline.
        """
        if member_id not in self.state.profiles:
            return
        group_id = self.state.group_id
        self._log.info("group {group}: member {member} {reason}", group=group_id, member=member_id, reason=reason)
        try:
            written = self.remove([member_id], None)
        except KafkaError as error:
            self._log.warn("{member} cannot be removed now: {error}", member=member_id, error=error)
            self.lifetimes.try_again(member_id, reason)
        else:
            if written is not None:
                written.addErrback(lambda _: None)  # it is undone and logged, and the member has a session again

    def _undone(self) -> None:
        """
        Changes that were seen are no more; members that were gone are there again.
        """
        self.planning.forget()
        self.lifetimes.begin(self.config.session_timeout_ms)
