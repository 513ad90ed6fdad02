"""
Log brokers for tests: everything that goes to threads or by turns happens at once, unless a test says otherwise.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from twisted.internet.defer import Deferred, execute, succeed
from twisted.internet.task import Clock

from kgateway.broker.log.broker import LogBroker
from kgateway.broker.log.disk import LocalDisk

T = TypeVar("T")

START_MS = 1_800_000_000_000


def at_once(call: Callable[[], T]) -> Deferred[T]:
    """
    A thread that is done before anybody can look.
    """
    return execute(call)


def without_turns(steps: Iterator[None]) -> Deferred[object]:
    """
    All steps at once.
    """
    return execute(lambda: [None for _ in steps]) if steps else succeed(None)


def log_broker(path: Path, **options: Any) -> LogBroker:
    """
    A broker on this folder, not started.
    """
    given: dict[str, Any] = {
        "node_id": 1,
        "now_ms": lambda: START_MS,
        "clock": Clock(),
        "in_thread": at_once,
        "in_turns": without_turns,
        "disk": LocalDisk(),
    }
    return LogBroker(path, **given | options)
