"""
The rounds in which a broker lets go of what its topics keep no longer.
"""

from collections.abc import Callable, Iterator
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from twisted.internet.defer import Deferred, fail, succeed
from twisted.internet.task import Clock
from twisted.logger import capturedLogs

from kgateway.broker.retention_rounds import RetentionRounds
from kgateway.wire.errors import ErrorCode, KafkaError

INTERVAL_S = 300


class Partitions:
    """
    Partitions that note when they are to let something go, and rounds over them.
    """

    def __init__(self, interval_ms: int = INTERVAL_S * 1000) -> None:
        self.clock = Clock()
        self.asked: list[tuple[float, str]] = []
        self.answers: dict[str, Callable[[], Deferred[None]]] = {}
        self.names = ["a", "b"]
        self.rounds = RetentionRounds(self.clock, interval_ms, self._names, self._partition)

    def _names(self) -> Deferred[Iterator[str]]:
        return succeed(iter(self.names))

    def _partition(self, name: str) -> Any:
        if name == "lost":
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "not ours")
        return SimpleNamespace(expire=partial(self._expire, name))

    def _expire(self, name: str) -> Deferred[None]:
        self.asked.append((self.clock.seconds(), name))
        return self.answers.get(name, lambda: succeed(None))()

    def advance(self, seconds: float) -> list[str]:
        """
        Who was asked meanwhile; turns of the reactor take no time.
        """
        before = len(self.asked)
        self.clock.advance(seconds)
        for _ in range(9):
            self.clock.advance(0)
        return [name for _, name in self.asked[before:]]


def test_rounds() -> None:
    """
    The first one begins half a minute after the start, each other one as long as was said after the end of the last.
    """
    partitions = Partitions()
    assert partitions.advance(29.9) == []
    assert partitions.advance(0.1) == ["a", "b"]
    assert partitions.advance(299.9) == []
    partitions.names.append("c")
    assert partitions.advance(0.1) == ["a", "b", "c"]


def test_frequent_rounds() -> None:
    """
    Where the rounds come more often than that, so does the first one.
    """
    partitions = Partitions(interval_ms=500)
    assert partitions.advance(0.5) == partitions.advance(0.5) == ["a", "b"]


def test_one_turn_for_each() -> None:
    """
    Between two partitions others have their turn, and one that takes long is waited for.
    """
    partitions, slow = Partitions(), Deferred[None]()

    def let_others(_: None) -> None:
        partitions.clock.callLater(0, partitions.asked.append, (0, "others"))

    partitions.answers["a"] = lambda: slow.addCallback(let_others)
    assert partitions.advance(30) == ["a"]
    assert partitions.advance(1000) == []
    slow.callback(None)
    assert partitions.advance(0) == ["others", "b"]
    assert partitions.advance(299.9) == []


@pytest.mark.parametrize(
    ("error", "logged"), [(KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "full"), 0), (ValueError("a bug"), 1)]
)
def test_failures(error: Exception, logged: int) -> None:
    """
    One that fails, or is not to be had, hinders neither the others nor the next round; a bug is logged.
    """
    partitions = Partitions()
    partitions.names = ["lost", "a", "b"]
    partitions.answers["a"] = lambda: fail(error)
    with capturedLogs() as events:
        assert partitions.advance(30) == ["a", "b"]
    assert sum("log_failure" in event for event in events) == logged
    with capturedLogs():
        assert partitions.advance(INTERVAL_S) == ["a", "b"]


def test_a_round_that_cannot_begin() -> None:
    """
    If nobody can tell which partitions there are, the next round tries again.
    """
    partitions = Partitions()
    partitions.names = None  # type: ignore[assignment]  # a bug
    with capturedLogs() as events:
        assert partitions.advance(30) == []
    assert sum("log_failure" in event for event in events) == 1
    partitions.names = ["a"]
    assert partitions.advance(INTERVAL_S) == ["a"]


def test_stopping() -> None:
    """
    When it is stopped nothing is asked any more, be it between rounds, between partitions or in the middle of one.
    """
    for seconds, seen in ((0, []), (30, ["a"])):
        partitions, slow = Partitions(), Deferred[None]()
        partitions.answers["a"] = lambda slow=slow: slow  # type: ignore[misc]  # mypy sees no default there
        assert partitions.advance(seconds) == seen
        partitions.rounds.stop()
        if not slow.called:
            slow.callback(None)
        assert partitions.advance(10 * INTERVAL_S) == []
        assert not partitions.clock.getDelayedCalls()
    partitions = Partitions()
    partitions.clock.advance(30)
    partitions.rounds.stop()
    assert partitions.advance(10 * INTERVAL_S) == []
    assert not partitions.clock.getDelayedCalls()
