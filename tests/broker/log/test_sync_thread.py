"""
The thread for syncs.
"""

from collections.abc import Callable, Iterator
from errno import EIO
from functools import partial
from pathlib import Path
from queue import Queue
from threading import Thread, current_thread
from typing import Any

import pytest
from twisted.internet.defer import Deferred

from kgateway.broker.log.sync_thread import SyncThread
from kgateway.cluster.partition import Origin
from tests.broker.behaviour import batch, result
from tests.broker.log.log_world import LogWorld

_PATIENCE_S = 20


class Reactor:
    """
    Runs what other threads want it to, when a test waits for something.
    """

    def __init__(self) -> None:
        self._wanted: Queue[tuple[Callable[..., object], tuple[Any, ...]]] = Queue()

    def call_from_thread(self, call: Callable[..., object], *arguments: Any) -> None:
        self._wanted.put((call, arguments))

    def until(self, waiting: Deferred[Any]) -> Any:
        while not waiting.called:
            call, arguments = self._wanted.get(timeout=_PATIENCE_S)
            call(*arguments)
        return result(waiting)


@pytest.fixture
def reactor() -> Reactor:
    return Reactor()


@pytest.fixture
def thread(reactor: Reactor) -> Iterator[SyncThread]:
    found = SyncThread(reactor.call_from_thread)
    yield found
    found.stop()


def test_runs_calls_in_order_in_one_thread(reactor: Reactor, thread: SyncThread) -> None:
    """
    Results arrive in the reactor's thread.
    """
    done = list[int]()
    used = set[Thread]()

    def work(number: int) -> int:
        done.append(number)
        used.add(current_thread())
        return number

    waiting = [thread(partial(work, number)) for number in range(3)]
    reported = [each.addCallback(lambda number: (number, current_thread())) for each in waiting]
    assert [reactor.until(each) for each in reported] == [(number, current_thread()) for number in range(3)]
    assert (done, len(used)) == ([0, 1, 2], 1)
    assert current_thread() not in used


def test_a_failed_call_does_not_end_the_thread(reactor: Reactor, thread: SyncThread) -> None:
    def fail() -> None:
        raise OSError(EIO, "no disk")

    failing, working = thread(fail), thread(current_thread)
    with pytest.raises(OSError, match="no disk"):
        reactor.until(failing)
    assert reactor.until(working).is_alive()


def test_the_thread_ends_after_the_calls_that_it_has(reactor: Reactor, thread: SyncThread) -> None:
    """
    A later call starts another thread.
    """
    waiting = thread(current_thread)
    thread.stop()
    first = reactor.until(waiting)
    first.join(_PATIENCE_S)
    assert not first.is_alive()
    assert reactor.until(thread(current_thread)) is not first


def test_a_broker_syncs_in_this_thread_and_ends_it(reactor: Reactor, tmp_path: Path) -> None:
    threads = list[Thread]()

    class Watched(SyncThread):
        def __call__(self, call: Callable[[], Any], /) -> Deferred[Any]:
            super().__call__(current_thread).addCallback(threads.append)
            return super().__call__(call)

    world = LogWorld(tmp_path, sync_thread=Watched(reactor.call_from_thread))
    partition = world.log_partition(acks_fsync=True)
    partition.append(batch(), Origin.CLIENT)
    committed = partition.append(batch(), Origin.CLIENT).committed
    assert committed is not None
    reactor.until(committed)
    (used,) = threads
    result(world.broker.stop())
    used.join(_PATIENCE_S)
    assert not used.is_alive()
