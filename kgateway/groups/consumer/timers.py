"""
The deadlines of members: for heartbeats, revocations, and the joins and syncs of classic members.
"""

from collections.abc import Callable
from enum import Enum
from functools import partial

from twisted.internet.interfaces import IReactorTime

from kgateway.groups.consumer.member import AWAY, MemberState
from kgateway.groups.consumer.state import ConsumerGroupState
from kgateway.groups.deadline import Deadline

_RETRY_MS = 1_000  # until the next attempt to expel a member

Expel = Callable[[str, str], None]  # takes a member and the reason


class Due(Enum):
    """
    What a member must do in time. The value is logged, followed by the time, if it does not.
    """

    HEARTBEAT = "expired after"
    REVOCATION = "revoked no partitions for"
    JOIN = "did not join again for"
    SYNC = "did not ask for its assignment for"

    __hash__ = object.__hash__  # each heartbeat looks one up, and Enum's is a function of Python


class MemberTimers:
    """
    Sets the deadlines of members, and has those expelled that miss one.
    """

    def __init__(self, state: ConsumerGroupState, clock: IReactorTime, expel: Expel) -> None:
        self._state = state
        self._clock = clock
        self._expel = expel
        self._deadlines: dict[tuple[Due, str], Deadline] = {}

    def renew_session(self, member_id: str, session_timeout_ms: int) -> None:
        """
        The member has until the next heartbeat. A classic member says itself how long that is.
        """
        classic = self._state.profiles[member_id].classic
        self._set(Due.HEARTBEAT, member_id, classic.session_timeout_ms if classic else session_timeout_ms)

    def update_revocation(self, member_id: str) -> None:
        """
        The member may have partitions to revoke. A classic member does so by joining again.
        """
        progress, profile = self._state.progress_of(member_id), self._state.profiles[member_id]
        if progress.state is not MemberState.UNREVOKED_PARTITIONS or progress.epoch == AWAY or profile.classic:
            self._cancel(Due.REVOCATION, member_id)
        else:
            self._set(Due.REVOCATION, member_id, profile.rebalance_timeout_ms)

    def expect_join(self, member_id: str) -> None:
        """
        A classic member has been asked to join again, maybe not for the first time.
        """
        if (Due.JOIN, member_id) not in self._deadlines:
            self._set(Due.JOIN, member_id, self._state.profiles[member_id].rebalance_timeout_ms)

    def expect_sync(self, member_id: str) -> None:
        self._cancel(Due.JOIN, member_id)
        self._set(Due.SYNC, member_id, self._state.profiles[member_id].rebalance_timeout_ms)

    def end_sync(self, member_id: str) -> None:
        self._cancel(Due.SYNC, member_id)

    def end_revocation(self, member_id: str) -> None:
        self._cancel(Due.REVOCATION, member_id)

    def cancel_all(self, member_id: str) -> None:
        for due in Due:
            self._cancel(due, member_id)

    def retry_expulsion(self, member_id: str, reason: str) -> None:
        self._set(Due.HEARTBEAT, member_id, _RETRY_MS, reason)

    def begin(self, session_timeout_ms: int) -> None:
        """
        Start the sessions of members that have none.
        """
        for member_id in self._state.profiles:
            if (Due.HEARTBEAT, member_id) not in self._deadlines:
                self.renew_session(member_id, session_timeout_ms)
            self.update_revocation(member_id)

    def stop(self) -> None:
        for due, member_id in list(self._deadlines):
            self._cancel(due, member_id)

    def _set(self, due: Due, member_id: str, timeout_ms: int, reason: str | None = None) -> None:
        missed = partial(self._missed, due, member_id, timeout_ms, reason)
        deadline = self._deadlines.get((due, member_id))
        if deadline is None:
            deadline = self._deadlines[due, member_id] = Deadline(self._clock, missed)
        deadline.missed = missed
        deadline.extend(timeout_ms)

    def _cancel(self, due: Due, member_id: str) -> None:
        deadline = self._deadlines.pop((due, member_id), None)
        if deadline:
            deadline.stop()

    def _missed(self, due: Due, member_id: str, timeout_ms: int, reason: str | None) -> None:
        del self._deadlines[due, member_id]
        self._expel(member_id, reason or f"{due.value} {timeout_ms / 1000:g} s")
