"""
Clients that are at work go on when the gateway that owns the topics is gone, and another takes over: nothing that was
acknowledged is lost, nothing is doubled, and nobody makes them anew.
"""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import pytest

from kgateway.broker.seaweed.dev_cluster import DevCluster
from tests.faults.seaweedmq.asking import all_values, end_of
from tests.faults.seaweedmq.pair import Pair

_PAUSE_S = 0.1
_PATIENCE_S = 45.0
_MORE = 100  # records, which take two and a half seconds


@pytest.fixture
def pair(cluster: DevCluster, tmp_path: Path) -> Iterator[Pair]:
    found = Pair(cluster, tmp_path, f"at-work-{monotonic():.0f}")
    try:
        yield found
    finally:
        found.end()


def killed(pair: Pair) -> None:
    """
    The first is there no more.
    """
    pair.first.kill()


def stopped(pair: Pair) -> None:
    """
    The first ends in good order.
    """
    pair.first.stop()


def asleep(pair: Pair) -> None:
    """
    The first stands still until another has its topics, and finds out afterwards.
    """
    pair.first.pause()
    pair.wait_for_second()
    pair.first.resume()


class Program:
    """
    What runs with one library.
    """

    def __init__(self, library: str, pair: Pair) -> None:
        module = "tests.faults.seaweedmq.at_work"
        self._command = [sys.executable, "-m", module, library, pair.place[0], pair.bootstrap]
        self._running = subprocess.Popen(self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def end(self) -> dict[str, Any]:
        """
        What it knows in the end.
        """
        told, _ = self._running.communicate(timeout=3 * _PATIENCE_S)
        found: dict[str, Any] = json.loads(told)
        return found

    def kill(self) -> None:
        """
        Leave nothing behind.
        """
        self._running.kill()
        self._running.wait()


def until_more(count: Callable[[], int], than: int) -> int:
    """
    Wait until there are so many more records.
    """
    deadline = monotonic() + _PATIENCE_S
    while (found := count()) < than + _MORE:
        assert monotonic() < deadline, f"there are {found} records, and no more come"
        sleep(_PAUSE_S)
    return found


@pytest.mark.parametrize("fault", [killed, stopped, asleep])
@pytest.mark.parametrize("library", ["librdkafka", "kafka-python", "aiokafka"])
def test_clients_at_work_go_on(pair: Pair, library: str, fault: Callable[[Pair], None]) -> None:
    """
    With the gateway that takes over.
    """
    program = Program(library, pair)
    try:
        before = until_more(lambda: end_of(pair.first, pair.place), 0)
        fault(pair)
        pair.wait_for_second()
        until_more(lambda: end_of(pair.second, pair.place), before)
        told = program.end()
    finally:
        program.kill()
    assert told["failed"] == []
    written = [int(value) for value in all_values(pair.second, pair.place)]
    assert written == list(range(told["sent"]))
    assert sorted(told["acknowledged"]) == written
    assert sorted(set(told["read"])) == written
