"""
Work that is repeated at intervals.
"""

from collections.abc import Iterator
from contextlib import suppress

import pytest
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.task import Clock
from twisted.logger import capturedLogs

from kgateway.broker.rounds import Rounds
from kgateway.log_messages import LISTENER_FAILED


class Work:
    """
    Rounds, and the Deferred that each of them waits for.
    """

    def __init__(self) -> None:
        self.clock, self.begun = Clock(), list[Deferred[None]]()
        self.rounds = Rounds(self.clock, 2_000, 7_000, self._round, LISTENER_FAILED)

    async def _round(self) -> None:
        self.begun.append(Deferred())
        await self.begun[-1]


@pytest.fixture
def work() -> Iterator[Work]:
    found = Work()
    yield found
    with suppress(CancelledError):
        found.rounds.stop()


def test_rounds_begin_after_an_interval(work: Work) -> None:
    """
    The first begins after one interval, each further one another interval after the end of the last.
    """
    work.clock.advance(1.9)
    assert not work.begun
    work.clock.advance(0.1)
    assert len(work.begun) == 1
    work.clock.advance(100)
    assert len(work.begun) == 1
    work.begun[0].callback(None)
    work.clock.advance(6.9)
    assert len(work.begun) == 1
    work.clock.advance(0.1)
    assert len(work.begun) == 2


def test_a_failing_round_is_logged(work: Work) -> None:
    """
    The next one begins on time.
    """
    work.clock.advance(2)
    with capturedLogs() as events:
        work.begun[0].errback(ValueError("a bug"))
    assert [event["log_format"] for event in events] == [LISTENER_FAILED]
    work.clock.advance(7)
    assert len(work.begun) == 2


def test_stop_cancels_the_round(work: Work) -> None:
    """
    The cancelled round logs nothing, and no further one begins.
    """
    work.clock.advance(2)
    with capturedLogs() as events:
        work.rounds.stop()
    assert work.begun[0].called
    assert not events
    assert not work.clock.getDelayedCalls()
    work.rounds.stop()


def test_stop_before_the_first_round(work: Work) -> None:
    work.rounds.stop()
    work.clock.advance(100)
    assert not work.begun


def test_finish_waits_for_the_round(work: Work) -> None:
    """
    No further round begins.
    """
    work.clock.advance(2)
    finished = work.rounds.finish()
    assert not finished.called
    work.begun[0].callback(None)
    assert finished.called
    assert not work.clock.getDelayedCalls()


def test_finish_of_a_failing_round(work: Work) -> None:
    """
    Its failure is logged, and finish succeeds.
    """
    work.clock.advance(2)
    finished = work.rounds.finish()
    with capturedLogs() as events:
        work.begun[0].errback(ValueError("a bug"))
    assert len(events) == 1
    assert finished.result is None


@pytest.mark.parametrize("seconds", [0, 2])
def test_finish_between_rounds_is_immediate(seconds: float, work: Work) -> None:
    work.clock.advance(seconds)
    for round_ in work.begun:
        round_.callback(None)
    assert work.rounds.finish().called
    assert not work.clock.getDelayedCalls()
