"""
No more than so many a second.
"""

import time
from collections.abc import Callable

from kgateway.cli.interrupts import Interrupts

_TICK_S = 0.01  # shorter waits cost more than they are worth


class Pace:
    """
    Counts what goes, and says when it goes too fast.
    """

    def __init__(
        self, rate: float | None, interrupts: Interrupts, seconds: Callable[[], float] = time.monotonic
    ) -> None:
        self._rate = rate
        self._interrupts = interrupts
        self._seconds = seconds
        self._began = seconds()
        self._count = 0

    def is_early(self) -> bool:
        """
        Count one more, and say whether it had better wait.
        """
        if self._rate is None:
            return False
        self._count += 1
        return self._due() - self._seconds() > _TICK_S

    def wait(self) -> None:
        """
        Until the one that was counted last is due.
        """
        if self._rate is not None:
            self._interrupts.rest(max(self._due() - self._seconds(), 0))

    def _due(self) -> float:
        return self._began + (self._count - 1) / (self._rate or 1)
