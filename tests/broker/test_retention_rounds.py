"""
Rounds in which a broker applies retention to its partitions.
"""

from collections.abc import Callable, Iterator
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from twisted.internet.defer import Deferred, fail, succeed
from twisted.internet.task import Clock
from twisted.logger import capturedLogs

from kgateway.broker.partition.retention import RetentionRounds
from kgateway.wire.errors import ErrorCode, KafkaError

INTERVAL_S = 300


class Partitions:
    """
    Partitions that record when retention is applied to them, and the rounds over them.
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
        The partitions visited meanwhile; turns of the reactor take no time.
        """
        before = len(self.asked)
        self.clock.advance(seconds)
        for _ in range(9):
            self.clock.advance(0)
        return [name for _, name in self.asked[before:]]


def test_rounds_begin_after_an_interval() -> None:
    """
    The first round begins half a minute after the start, and each further one an interval after the end of the last.
    """
    partitions = Partitions()
    assert partitions.advance(29.9) == []
    assert partitions.advance(0.1) == ["a", "b"]
    assert partitions.advance(299.9) == []
    partitions.names.append("c")
    assert partitions.advance(0.1) == ["a", "b", "c"]


def test_short_intervals_shorten_the_first_wait() -> None:
    partitions = Partitions(interval_ms=500)
    assert partitions.advance(0.5) == partitions.advance(0.5) == ["a", "b"]


def test_other_work_runs_between_partitions() -> None:
    """
    A slow partition is waited for.
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
def test_a_failing_partition_hinders_nothing(error: Exception, logged: int) -> None:
    """
    The other partitions and the next round go ahead, and a bug is logged.
    """
    partitions = Partitions()
    partitions.names = ["lost", "a", "b"]
    partitions.answers["a"] = lambda: fail(error)
    with capturedLogs() as events:
        assert partitions.advance(30) == ["a", "b"]
    assert sum("log_failure" in event for event in events) == logged
    with capturedLogs():
        assert partitions.advance(INTERVAL_S) == ["a", "b"]


def test_a_round_that_cannot_begin_is_retried() -> None:
    """
    A failure to list the partitions ends this round only.
    """
    partitions = Partitions()
    partitions.names = None  # type: ignore[assignment]  # a bug
    with capturedLogs() as events:
        assert partitions.advance(30) == []
    assert sum("log_failure" in event for event in events) == 1
    partitions.names = ["a"]
    assert partitions.advance(INTERVAL_S) == ["a"]


def test_stop_ends_rounds() -> None:
    """
    No partition is visited after a stop between rounds, between partitions or within one.
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
