"""
When long polls end.

Clients that wait for half a second are many, and mostly nothing comes. So the ends of waits fall together on a grid of
time, a little early rather than late: one timer ends many of them, in one turn of the reactor.
"""

from typing import NamedTuple, Protocol

from twisted.internet.interfaces import IDelayedCall
from twisted.logger import Logger

from kgateway.context import GatewayParts

GRID_S = 0.1  # for waits that are some times as long
_GRID_TIMES = 4
_EPSILON = 1e-6  # sums of floats fall a little short of the grid


class Waiting(Protocol):
    """
    What is told that its time is up.
    """

    def time_is_up(self) -> None: ...


class _Together(NamedTuple):
    """
    Those that end at one moment.
    """

    timer: IDelayedCall
    waiting: dict[Waiting, None]


class Ends:
    """
    All waits of a gateway.
    """

    _log = Logger()

    def __init__(self, gateway: GatewayParts) -> None:
        self._clock = gateway.clock
        self._moments: dict[float, _Together] = {}

    def add(self, waiting: Waiting, wait_s: float) -> float:
        """
        Tell it when so much time has gone by; the moment at which that is.
        """
        now = self._clock.seconds()
        moment = now + wait_s
        if wait_s >= _GRID_TIMES * GRID_S:
            moment = (moment + _EPSILON) // GRID_S * GRID_S
        together = self._moments.get(moment)
        if together is None:
            timer = self._clock.callLater(moment - now, self._end, moment)
            together = self._moments[moment] = _Together(timer, {})
        together.waiting[waiting] = None
        return moment

    def remove(self, waiting: Waiting, moment: float) -> None:
        """
        It does not wait for that moment any more.
        """
        together = self._moments.get(moment)
        if together and waiting in together.waiting:
            del together.waiting[waiting]
            if not together.waiting:
                del self._moments[moment]
                together.timer.cancel()

    def _end(self, moment: float) -> None:
        for waiting in self._moments.pop(moment).waiting:
            try:
                waiting.time_is_up()
            except Exception:
                self._log.failure("a wait did not end")
