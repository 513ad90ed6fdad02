"""
Doing again what failed for a passing reason, after delays that grow, until a deadline.

Only what may be done twice is done again: reading, and writing of what is the same each time.
"""

import random
from collections.abc import Awaitable, Callable
from typing import TypeVar

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import deferLater

from kgateway.broker.seaweed.grpc.status import RpcError, Status

T = TypeVar("T")
Demand = Callable[[], None]  # raises where something must not be done any more; called before each attempt

PASSING = frozenset({Status.UNAVAILABLE, Status.DEADLINE_EXCEEDED, Status.RESOURCE_EXHAUSTED, Status.ABORTED})
_FIRST_S = 0.05
_LONGEST_S = 1.0
_GROWTH = 2


def demand_nothing() -> None:
    """
    Whatever is to be done may be.
    """


def is_passing(error: Exception) -> bool:
    """
    Whether the same may go well a little later.
    """
    return isinstance(error, RpcError) and error.status in PASSING


def delay_s(failures: int, share: float) -> float:
    """
    How long to wait after so many failures in a row: between half of the full delay and all of it, by this share.
    """
    full: float = min(_LONGEST_S, _FIRST_S * _GROWTH ** min(failures - 1, 10))
    return full * (1 + share) / 2


class Retrying:
    """
    By one clock. The jitter is from `share`: numbers from 0 to 1, at random.
    """

    def __init__(self, clock: IReactorTime, share: Callable[[], float] = random.random) -> None:
        self._clock = clock
        self._share = share

    def run(
        self,
        attempt: Callable[[float], Awaitable[T]],
        timeout_s: float,
        may_repeat: Callable[[Exception], bool] = is_passing,
    ) -> Deferred[T]:
        """
        The outcome of the first attempt that does not fail for a passing reason, or of the last before the time is
        over. Each attempt is told how many seconds there are.
        """
        return Deferred.fromCoroutine(self._run(attempt, self._clock.seconds() + timeout_s, may_repeat))

    def wait(self, seconds: float) -> Deferred[None]:
        """
        Fires after so long.
        """
        return deferLater(self._clock, seconds)

    def pause(self, failures: int) -> Deferred[None]:
        """
        Fires when it is time for another attempt.
        """
        return deferLater(self._clock, delay_s(failures, self._share()))

    async def _run(
        self, attempt: Callable[[float], Awaitable[T]], deadline: float, may_repeat: Callable[[Exception], bool]
    ) -> T:
        failures = 0
        while True:
            try:
                return await attempt(deadline - self._clock.seconds())
            except Exception as error:
                failures += 1
                delay = delay_s(failures, self._share())
                if not may_repeat(error) or self._clock.seconds() + delay >= deadline:
                    raise
            await deferLater(self._clock, delay)
