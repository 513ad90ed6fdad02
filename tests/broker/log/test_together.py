"""
Work that is done together, in few threads.
"""

from functools import partial
from pathlib import Path

import pytest
from twisted.internet.defer import Deferred

from kgateway.broker.log.together import GoOn, Together
from tests.broker.log.making import Threads


class Busy:
    """
    Two threads that do what they are given when a test says so.
    """

    def __init__(self) -> None:
        self.threads = Threads()
        self.threads.slow = True
        self.together = Together(self.threads)
        self.done: list[str] = []
        self.known: list[int] = []  # folders, at each of these

    def do(self, *names: str) -> list[Deferred[None]]:
        return [self.together.do(partial(self._work, name)) for name in names]

    def _work(self, name: str, synced: set[Path], go_on: GoOn) -> None:
        go_on()
        self.done.append(name)
        self.known.append(len(synced))
        synced.add(Path(name))


@pytest.fixture
def busy() -> Busy:
    return Busy()


def test_what_comes_meanwhile_is_done_at_once(busy: Busy) -> None:
    """
    While all threads are busy work waits, and the one that is free first does all of it.
    """
    asked = busy.do("a", "b", "c", "d", "e")
    assert len(busy.threads) == 2
    busy.threads.work()
    assert (busy.done, [each.called for each in asked]) == (["a"], [True, False, False, False, False])
    for _ in range(2):
        busy.threads.work()
    assert busy.done == ["a", "b", "c", "d", "e"]
    assert busy.known == [0, 0, 0, 1, 2]  # what was synced before it was asked for does not count
    assert all(each.called for each in asked)
    busy.do("f", "g", "h")
    assert len(busy.threads) == 2


def test_each_fails_for_itself(busy: Busy) -> None:
    """
    Work that fails fails nobody else's.
    """

    def failing(_: set[Path], go_on: GoOn) -> None:
        raise OSError("no disk")

    busy.do("a", "b")
    failed: list[str] = []
    asked = [*busy.do("c"), busy.together.do(failing), *busy.do("d")]
    asked[1].addErrback(lambda failure: failed.append(failure.getErrorMessage()))
    while busy.threads:
        busy.threads.work()
    assert (busy.done, failed) == (["a", "b", "c", "d"], ["no disk"])
    assert all(each.called for each in asked)


def test_what_was_taken_is_not_begun_when_it_is_over(busy: Busy) -> None:
    """
    A thread ends after the one thing that it is doing; nobody hears of what was not done, and nothing more is taken.
    """

    def stopping(_: set[Path], go_on: GoOn) -> None:
        go_on()
        busy.together.stop()
        go_on()
        busy.done.append("too late")

    busy.do("a", "b")
    asked = [*busy.do("c"), busy.together.do(stopping), *busy.do("d")]
    while busy.threads:
        busy.threads.work()
    assert busy.done == ["a", "b", "c"]
    assert [each.called for each in asked] == [True, False, False]
    asked += busy.do("e")
    assert (len(busy.threads), asked[-1].called) == (0, False)
