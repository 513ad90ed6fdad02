"""
No more than so many a second.
"""

from typing import cast

from kgateway.cli.interrupts import Interrupts
from kgateway.cli.pace import Pace


class Resting:
    """
    A clock that goes on when somebody rests.
    """

    def __init__(self) -> None:
        self.now = 100.0
        self.rests: list[float] = []

    def rest(self, seconds: float) -> None:
        self.rests.append(round(seconds, 3))
        self.now += seconds


def test_who_is_early_waits() -> None:
    """
    Until the record is due; the first one is due at once.
    """
    resting = Resting()
    pace = Pace(10, cast(Interrupts, resting), lambda: resting.now)
    for _ in range(5):
        if pace.is_early():
            pace.wait()
    assert resting.rests == [0.1] * 4


def test_many_a_second_go_together() -> None:
    """
    Short waits are put together.
    """
    resting = Resting()
    pace = Pace(1000, cast(Interrupts, resting), lambda: resting.now)
    for _ in range(100):
        if pace.is_early():
            pace.wait()
    assert sum(resting.rests) > 0.08
    assert len(resting.rests) < 10


def test_who_is_late_does_not_wait() -> None:
    """
    What took long is made good.
    """
    resting = Resting()
    pace = Pace(10, cast(Interrupts, resting), lambda: resting.now)
    pace.is_early()
    resting.now += 0.35
    assert [pace.is_early() for _ in range(5)] == [False, False, False, True, True]


def test_without_a_rate_nobody_waits() -> None:
    """
    However many there are.
    """
    resting = Resting()
    pace = Pace(None, cast(Interrupts, resting), lambda: resting.now)
    assert not any(pace.is_early() for _ in range(100))
    pace.wait()
    assert resting.rests == []
