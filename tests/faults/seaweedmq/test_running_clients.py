"""
Running clients continue when the gateway that leads is gone, and another takes over: no acknowledged record is lost or
doubled, and no client is created again. Java's clients run if KAFKA_JARS names them.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import pytest

from kgateway.broker.seaweed.dev.dev_cluster import DevCluster
from tests.faults.ledger import PartitionName
from tests.faults.seaweedmq.client_process import LIBRARIES
from tests.faults.seaweedmq.gateway import Gateway
from tests.faults.seaweedmq.gateway_pair import Pair
from tests.faults.seaweedmq.kafka_requests import all_values, end_of

_PAUSE_S = 0.1
_PATIENCE_S = 60.0
_MORE = 100  # records, which take two and a half seconds
_LIBRARIES = [name for name in LIBRARIES if name != "java" or "KAFKA_JARS" in os.environ]


@pytest.fixture
def pair(cluster: DevCluster, tmp_path: Path) -> Iterator[Pair]:
    found = Pair(cluster, tmp_path, f"at-work-{monotonic():.0f}")
    try:
        yield found
    finally:
        found.end()


def killed(pair: Pair) -> None:
    """
    Kill the first gateway.
    """
    pair.first.kill()


def stopped(pair: Pair) -> None:
    """
    Stop the first gateway in order.
    """
    pair.first.stop()


def asleep(pair: Pair) -> None:
    """
    Pause the first gateway until another one has its topics, then resume it.
    """
    pair.first.pause()
    pair.wait_for_second()
    pair.first.resume()


class Program:
    """
    A program that uses one library, with a topic of its own.
    """

    def __init__(self, library: str, pair: Pair) -> None:
        self.place = f"{pair.place[0]}-{library}", 0
        pair.first.create(self.place[0], 1, "held", "batch")
        command = [
            sys.executable,
            "-m",
            "tests.faults.seaweedmq.client_process",
            library,
            self.place[0],
            pair.bootstrap,
        ]
        self._running = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __enter__(self) -> "Program":
        return self

    def __exit__(self, *_: object) -> None:
        self._running.kill()
        self._running.wait()

    def end(self) -> dict[str, Any]:
        """
        End the program. Returns what it knows.
        """
        told, _ = self._running.communicate(timeout=3 * _PATIENCE_S)
        found: dict[str, Any] = json.loads(told)
        return found


def until_more(gateway: Gateway, place: PartitionName, than: int = 0) -> int:
    """
    Wait until there are this many more records.
    """
    deadline = monotonic() + _PATIENCE_S
    while (found := end_of(gateway, place)) < than + _MORE:
        assert monotonic() < deadline, f"there are {found} records in {place}, and no more come"
        sleep(_PAUSE_S)
    return found


@pytest.mark.parametrize("fault", [killed, stopped, asleep])
def test_clients_at_work_go_on(pair: Pair, fault: Callable[[Pair], None]) -> None:
    """
    They use the gateway that takes over.
    """
    with ExitStack() as running:
        programs = {library: running.enter_context(Program(library, pair)) for library in _LIBRARIES}
        before = [until_more(pair.first, each.place) for each in programs.values()]
        fault(pair)
        pair.wait_for_second()
        for each, count in zip(programs.values(), before, strict=True):
            until_more(pair.second, each.place, count)
        found = {library: (each.end(), all_values(pair.second, each.place)) for library, each in programs.items()}
    for library, (told, values) in found.items():
        written = [int(value) for value in values]
        assert told["failed"] == [], library
        assert written == list(range(told["sent"])), library
        assert sorted(told["acknowledged"]) == written, library
        assert sorted(set(told["read"])) == written, library
