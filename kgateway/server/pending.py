"""
An answer that is not there yet.
"""

from collections.abc import Callable
from typing import Any

from twisted.internet.defer import Deferred

from kgateway.later import Later


class HangUp(Exception):
    """
    The connection must be closed in place of an answer.
    """


class Pending:
    """
    The answer to a request that has started. `buffers` are there once it is `ready`; with `hang_up` the connection is
    closed in its place.
    """

    __slots__ = ("_on_ready", "_work", "buffers", "hang_up", "next_may_start", "polls", "ready")

    def __init__(self, *, next_may_start: bool, polls: bool) -> None:
        self.next_may_start = next_may_start
        self.ready = False
        self.buffers: list[bytes] = []
        self.hang_up: str | None = None
        self._on_ready: Callable[[], None] | None = None
        self.polls = polls
        self._work: Later | Deferred[Any] | None = None

    @classmethod
    def of(cls, buffers: list[bytes]) -> "Pending":
        """
        An answer that is there, and waits only for its turn.
        """
        pending = cls(next_may_start=True, polls=False)
        pending.become(buffers)
        return pending

    @property
    def api(self) -> str:
        """
        What it answers, where that is known.
        """
        return ""

    def call_when_ready(self, listener: Callable[[], None]) -> None:
        """
        Call at once where it is ready.
        """
        self._on_ready = listener
        if self.ready:
            listener()

    def follow(self, work: Later | Deferred[Any]) -> None:
        """
        What this answer comes out of; it ends by `become` or `fail`.
        """
        self._work = work

    def become(self, buffers: list[bytes]) -> None:
        """
        Here it is.
        """
        self.buffers = buffers
        self._end()

    def fail(self, reason: str) -> None:
        """
        There is no answer; the connection has to go.
        """
        self.hang_up = reason
        self._end()

    def cut_short(self) -> None:
        """
        End a long poll with what there is. Anything else that has started goes on.
        """
        if self.polls and self._work and not self.ready:
            self._work.cancel()

    def _end(self) -> None:
        self.ready = True
        if self._on_ready:
            self._on_ready()
