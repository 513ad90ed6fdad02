"""
Times by which a member must have done something.

To put one off is an assignment: the timer that was set for the earlier time finds the later one, and waits on.
"""

from collections.abc import Callable
from enum import Enum

from twisted.internet.interfaces import IDelayedCall, IReactorTime


class Due(Enum):
    """
    What a member must have done.
    """

    HEARTBEAT = "sent a heartbeat"
    REVOCATION = "let go partitions"
    JOIN = "joined again"
    SYNC = "asked for its assignment"


class _Deadline:
    __slots__ = ("at", "call", "missed")

    def __init__(self, at: float, missed: Callable[[], None]) -> None:
        self.at = at
        self.missed = missed
        self.call: IDelayedCall | None = None


class Deadlines:
    """
    The deadlines of the members of one group.
    """

    def __init__(self, clock: IReactorTime) -> None:
        self._clock = clock
        self._all: dict[tuple[Due, str], _Deadline] = {}

    def set(self, due: Due, member_id: str, within_ms: int, missed: Callable[[], None]) -> None:
        """
        Call when the time is over, unless it is put off or cancelled before; in place of what was set.
        """
        at = self._clock.seconds() + within_ms / 1000
        deadline = self._all.get((due, member_id))
        if deadline is None:
            deadline = self._all[due, member_id] = _Deadline(at, missed)
        elif at < deadline.at and deadline.call:
            deadline.call.cancel()
            deadline.call = None
        deadline.at, deadline.missed = at, missed
        if deadline.call is None:
            self._arm(due, member_id, deadline)

    def has(self, due: Due, member_id: str) -> bool:
        return (due, member_id) in self._all

    def cancel(self, due: Due, member_id: str) -> None:
        deadline = self._all.pop((due, member_id), None)
        if deadline and deadline.call:
            deadline.call.cancel()

    def cancel_all(self, member_id: str) -> None:
        """
        The member is gone.
        """
        for due in Due:
            self.cancel(due, member_id)

    def stop(self) -> None:
        """
        Cancel those of all members.
        """
        for due, member_id in list(self._all):
            self.cancel(due, member_id)

    def _arm(self, due: Due, member_id: str, deadline: _Deadline) -> None:
        wait = max(0, deadline.at - self._clock.seconds())
        deadline.call = self._clock.callLater(wait, self._look, due, member_id, deadline)

    def _look(self, due: Due, member_id: str, deadline: _Deadline) -> None:
        deadline.call = None
        if self._clock.seconds() < deadline.at:
            self._arm(due, member_id, deadline)
        else:
            del self._all[due, member_id]
            deadline.missed()
