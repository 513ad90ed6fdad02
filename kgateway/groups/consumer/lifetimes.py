"""
Until when members must do what they must do.
"""

from collections.abc import Callable
from functools import partial

from twisted.internet.interfaces import IReactorTime

from kgateway.groups.consumer.deadlines import Deadlines, Due
from kgateway.groups.consumer.member import AWAY, MemberState
from kgateway.groups.consumer.state import GroupState

_RETRY_MS = 1_000  # after which a member is removed that could not be
# Of whoever misses a deadline, what is logged, before the time.
_WHAT = {
    Due.HEARTBEAT: "expired after",
    Due.REVOCATION: "let no partitions go for",
    Due.JOIN: "did not join again for",
    Due.SYNC: "did not ask for its assignment for",
}

Expel = Callable[[str, str], None]  # a member, and why


class Lifetimes:
    """
    Sets the deadlines of members, and has those expelled that miss one.
    """

    def __init__(self, state: GroupState, clock: IReactorTime, expel: Expel) -> None:
        self._state = state
        self._deadlines = Deadlines(clock)
        self._expel = expel

    def has_lived(self, member_id: str, session_timeout_ms: int) -> None:
        """
        It has been heard of, and has until the next heartbeat; how long, a classic member says itself.
        """
        classic = self._state.profiles[member_id].classic
        timeout_ms = classic.session_timeout_ms if classic else session_timeout_ms
        self._within(Due.HEARTBEAT, member_id, timeout_ms)

    def has_moved(self, member_id: str) -> None:
        """
        It may have partitions to let go. A classic member does so by joining again.
        """
        progress, profile = self._state.progress_of(member_id), self._state.profiles[member_id]
        if progress.state is not MemberState.UNREVOKED_PARTITIONS or progress.epoch == AWAY or profile.classic:
            self._deadlines.cancel(Due.REVOCATION, member_id)
            return
        timeout_ms = profile.rebalance_timeout_ms
        self._within(Due.REVOCATION, member_id, timeout_ms)

    def must_join(self, member_id: str) -> None:
        """
        A classic member is told to join again, maybe not for the first time.
        """
        if not self._deadlines.has(Due.JOIN, member_id):
            timeout_ms = self._state.profiles[member_id].rebalance_timeout_ms
            self._within(Due.JOIN, member_id, timeout_ms)

    def must_sync(self, member_id: str) -> None:
        """
        A classic member has joined.
        """
        self._deadlines.cancel(Due.JOIN, member_id)
        timeout_ms = self._state.profiles[member_id].rebalance_timeout_ms
        self._within(Due.SYNC, member_id, timeout_ms)

    def has_synced(self, member_id: str) -> None:
        self._deadlines.cancel(Due.SYNC, member_id)

    def is_away(self, member_id: str) -> None:
        """
        Its session goes on; there is nothing that it must let go.
        """
        self._deadlines.cancel(Due.REVOCATION, member_id)

    def is_gone(self, member_id: str) -> None:
        self._deadlines.cancel_all(member_id)

    def try_again(self, member_id: str, reason: str) -> None:
        """
        It could not be expelled now.
        """
        self._deadlines.set(Due.HEARTBEAT, member_id, _RETRY_MS, partial(self._expel, member_id, reason))

    def begin(self, session_timeout_ms: int) -> None:
        """
        Of members that have none, the sessions begin.
        """
        for member_id in self._state.profiles:
            if not self._deadlines.has(Due.HEARTBEAT, member_id):
                self.has_lived(member_id, session_timeout_ms)
            self.has_moved(member_id)

    def stop(self) -> None:
        self._deadlines.stop()

    def _within(self, due: Due, member_id: str, timeout_ms: int) -> None:
        self._deadlines.set(due, member_id, timeout_ms, partial(self._missed, due, member_id, timeout_ms))

    def _missed(self, due: Due, member_id: str, timeout_ms: int) -> None:
        self._expel(member_id, f"{_WHAT[due]} {timeout_ms / 1000:g} s")
