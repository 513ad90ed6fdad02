"""
Deadlines by which a member must have done something.

To extend one costs only an assignment: the timer for the earlier time finds the later time, and is armed again. So a
sign of life sets no timer.
"""

from collections.abc import Callable

from twisted.internet.interfaces import IDelayedCall, IReactorTime

_SOON = 0.001  # seconds: the error of sums of floats


class Deadline:
    __slots__ = ("_at", "_call", "_clock", "missed")

    def __init__(self, clock: IReactorTime, missed: Callable[[], object]) -> None:
        self.missed = missed
        self._clock = clock
        self._at = 0.0
        self._call: IDelayedCall | None = None

    def extend(self, timeout_ms: int) -> None:
        """
        Set the deadline to this time from now, which may be later or earlier than before.
        """
        self._at = self._clock.seconds() + timeout_ms / 1000
        if self._call is not None and self._call.getTime() > self._at + _SOON:
            self.stop()
        if self._call is None:
            self._arm()

    def stop(self) -> None:
        if self._call is not None:
            self._call.cancel()
            self._call = None

    def _arm(self) -> None:
        self._call = self._clock.callLater(max(0.0, self._at - self._clock.seconds()), self._check)

    def _check(self) -> None:
        self._call = None
        if self._at - self._clock.seconds() > _SOON:
            self._arm()
        else:
            self.missed()
