"""
The limit of records per second.
"""

from typing import cast

from kgateway.cli.common.interrupts import Interrupts
from kgateway.cli.produce.command import RateLimit


class FakeClock:
    """
    A clock that advances during sleeps.
    """

    def __init__(self) -> None:
        self.now = 100.0
        self.rests: list[float] = []

    def rest(self, seconds: float) -> None:
        self.rests.append(round(seconds, 3))
        self.now += seconds


def test_an_early_record_waits() -> None:
    """
    Each record waits until it is due; the first one is due at once.
    """
    resting = FakeClock()
    limit = RateLimit(10, cast(Interrupts, resting), lambda: resting.now)
    for _ in range(5):
        if limit.is_early():
            limit.wait()
    assert resting.rests == [0.1] * 4


def test_short_waits_are_combined() -> None:
    """
    At a high rate the pauses are few.
    """
    resting = FakeClock()
    limit = RateLimit(1000, cast(Interrupts, resting), lambda: resting.now)
    for _ in range(100):
        if limit.is_early():
            limit.wait()
    assert sum(resting.rests) > 0.08
    assert len(resting.rests) < 10


def test_lost_time_is_made_up() -> None:
    """
    After a delay records do not wait until the rate is reached again.
    """
    resting = FakeClock()
    limit = RateLimit(10, cast(Interrupts, resting), lambda: resting.now)
    limit.is_early()
    resting.now += 0.35
    assert [limit.is_early() for _ in range(5)] == [False, False, False, True, True]


def test_without_a_rate_no_record_waits() -> None:
    """
    Any number of records passes.
    """
    resting = FakeClock()
    limit = RateLimit(None, cast(Interrupts, resting), lambda: resting.now)
    assert not any(limit.is_early() for _ in range(100))
    limit.wait()
    assert resting.rests == []
