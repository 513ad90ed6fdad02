"""
Retries calls that failed for a passing reason, after growing delays, until a deadline.

Only idempotent calls are repeated: reads, and writes of the same bytes each time.
"""

import random
from collections.abc import Awaitable, Callable
from typing import TypeVar

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import deferLater

from kgateway.broker.seaweed.grpc.status import RpcError, Status

T = TypeVar("T")
Precondition = Callable[[], None]  # called before each attempt; raises if it must not be made

PASSING = frozenset({Status.UNAVAILABLE, Status.DEADLINE_EXCEEDED, Status.RESOURCE_EXHAUSTED, Status.ABORTED})
_FIRST_S = 0.05
_LONGEST_S = 1.0
_GROWTH = 2


def no_precondition() -> None:
    pass


def is_passing(error: Exception) -> bool:
    """
    Whether the same call may succeed a little later.
    """
    return isinstance(error, RpcError) and error.status in PASSING


def delay_s(failures: int, share: float) -> float:
    """
    The pause after this many failures in a row: between half of the full delay and all of it, by this share.
    """
    full: float = min(_LONGEST_S, _FIRST_S * _GROWTH ** min(failures - 1, 10))
    return full * (1 + share) / 2


class Retries:
    """
    Retries by one clock. The jitter comes from `share`, random numbers from 0 to 1.
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
        The outcome of the first attempt that does not fail for a passing reason, or of the last before the deadline.
        Each attempt gets the seconds that are left.
        """
        return Deferred.fromCoroutine(self._run(attempt, self._clock.seconds() + timeout_s, may_repeat))

    def wait(self, seconds: float) -> Deferred[None]:
        return deferLater(self._clock, seconds)

    def pause(self, failures: int) -> Deferred[None]:
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


class FilerRefused(Exception):
    """
    A filer or a volume server refuses a request, in its own words, and will refuse it again.
    """

    def __init__(self, path: str, words: str) -> None:
        super().__init__(path, words)
        self.path, self.words = path, words

    def __str__(self) -> str:
        return f"{self.path}: {self.words}"
