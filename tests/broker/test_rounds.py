"""
Work that is taken up again and again.
"""

from collections.abc import Iterator
from contextlib import suppress

import pytest
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.task import Clock
from twisted.logger import capturedLogs

from kgateway.broker.rounds import Rounds


class Work:
    """
    Rounds, and what each of them waits for.
    """

    def __init__(self) -> None:
        self.clock, self.begun = Clock(), list[Deferred[None]]()
        self.rounds = Rounds(self.clock, 2_000, 7_000, self._round, "it could not be done")

    async def _round(self) -> None:
        self.begun.append(Deferred())
        await self.begun[-1]


@pytest.fixture
def work() -> Iterator[Work]:
    found = Work()
    yield found
    with suppress(CancelledError):
        found.rounds.stop()


def test_rounds(work: Work) -> None:
    """
    The first begins after the one time, each other after the other time, counted from the end of the last.
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


def test_a_round_that_fails(work: Work) -> None:
    """
    It is logged, and the next one comes when it is time.
    """
    work.clock.advance(2)
    with capturedLogs() as events:
        work.begun[0].errback(ValueError("a bug"))
    assert [event["told"] for event in events] == ["it could not be done"]
    work.clock.advance(7)
    assert len(work.begun) == 2


def test_stop(work: Work) -> None:
    """
    What waits is given up, without a word, and nothing begins any more.
    """
    work.clock.advance(2)
    with capturedLogs() as events:
        work.rounds.stop()
    assert work.begun[0].called
    assert not events
    assert not work.clock.getDelayedCalls()
    work.rounds.stop()


def test_stop_before_the_first(work: Work) -> None:
    """
    Then there is none.
    """
    work.rounds.stop()
    work.clock.advance(100)
    assert not work.begun


def test_finish(work: Work) -> None:
    """
    The round that runs is waited for, and none begins after it.
    """
    work.clock.advance(2)
    finished = work.rounds.finish()
    assert not finished.called
    work.begun[0].callback(None)
    assert finished.called
    assert not work.clock.getDelayedCalls()


def test_finish_of_a_round_that_fails(work: Work) -> None:
    """
    Its failure is logged, and no failure of who waits.
    """
    work.clock.advance(2)
    finished = work.rounds.finish()
    with capturedLogs() as events:
        work.begun[0].errback(ValueError("a bug"))
    assert len(events) == 1
    assert finished.result is None


@pytest.mark.parametrize("seconds", [0, 2])
def test_finish_between_rounds(seconds: float, work: Work) -> None:
    """
    Nothing has to be waited for, and nothing begins.
    """
    work.clock.advance(seconds)
    for round_ in work.begun:
        round_.callback(None)
    assert work.rounds.finish().called
    assert not work.clock.getDelayedCalls()
