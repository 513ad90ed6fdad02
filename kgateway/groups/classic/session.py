"""
How long a member may be silent, kept so that a sign of life costs next to nothing: it notes the time, and the timer
that fires too early is armed again.
"""

from collections.abc import Callable

from twisted.internet.interfaces import IDelayedCall, IReactorTime

_SOON = 0.001  # seconds; what a sum of floats may be off


class Session:
    """
    Calls `expired` when it has not been renewed in time.
    """

    __slots__ = ("_call", "_clock", "_deadline", "_expired")

    def __init__(self, clock: IReactorTime, expired: Callable[[], object]) -> None:
        self._clock = clock
        self._expired = expired
        self._deadline = 0.0
        self._call: IDelayedCall | None = None

    def renew(self, timeout_ms: int) -> None:
        """
        There was a sign of life; the next one is due within this time.
        """
        self._deadline = self._clock.seconds() + timeout_ms / 1000
        if self._call is not None and self._call.getTime() > self._deadline + _SOON:
            self.stop()  # the time allowed has become shorter
        if self._call is None:
            self._arm()

    def stop(self) -> None:
        """
        It does not matter any more.
        """
        if self._call is not None:
            self._call.cancel()
            self._call = None

    def _arm(self) -> None:
        self._call = self._clock.callLater(max(0.0, self._deadline - self._clock.seconds()), self._look)

    def _look(self) -> None:
        self._call = None
        if self._deadline - self._clock.seconds() > _SOON:
            self._arm()
        else:
            self._expired()
