"""
Whether a peer is still there that has been silent though it has calls to answer: a TCP connection does not tell.
"""

from collections.abc import Callable

from twisted.internet.interfaces import IDelayedCall, IReactorTime

from kgateway.broker.seaweed.grpc.limits import Limits


class Keepalive:
    """
    Of one connection. It is told of all that is received, and whether the peer has something to answer; it asks to
    `ping`, and says when the peer is `gone`.
    """

    def __init__(
        self,
        clock: IReactorTime,
        limits: Limits,
        is_owed: Callable[[], bool],
        ping: Callable[[], None],
        gone: Callable[[], None],
    ) -> None:
        self._clock = clock
        self._limits = limits
        self._is_owed = is_owed
        self._ping = ping
        self._gone = gone
        self._heard_at = clock.seconds()
        self._is_asked = False
        self._timer: IDelayedCall = clock.callLater(limits.silent_s, self._look)

    def heard(self) -> None:
        """
        The peer has said something, whatever it is.
        """
        self._heard_at = self._clock.seconds()
        self._is_asked = False

    def stop(self) -> None:
        """
        The connection is no more.
        """
        if self._timer.active():
            self._timer.cancel()

    def _look(self) -> None:
        if self._is_asked:
            self._gone()
            return
        left = self._heard_at + self._limits.silent_s - self._clock.seconds()
        if left > 0:
            self._timer = self._clock.callLater(left, self._look)
        elif not self._is_owed():
            self._timer = self._clock.callLater(self._limits.silent_s, self._look)
        else:
            self._is_asked = True
            self._ping()
            self._timer = self._clock.callLater(self._limits.ping_answer_s, self._look)
