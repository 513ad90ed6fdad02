"""
A thread for the syncs that many clients wait for.

It has one queue, of C, and no coordinator as the reactor's thread pool has, which adds to the time until each response.
"""

from collections.abc import Callable
from queue import SimpleQueue
from threading import Thread
from typing import Any, TypeVar

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

T = TypeVar("T")


class SyncThread:
    """
    Runs calls one after another. The thread starts with the first call.
    """

    def __init__(self, call_from_thread: Callable[..., object]) -> None:
        self._call_from_thread = call_from_thread  # the reactor's
        self._calls: SimpleQueue[tuple[Callable[[], Any], Deferred[Any]] | None] = SimpleQueue()
        self._is_started = False

    def __call__(self, call: Callable[[], T], /) -> Deferred[T]:
        if not self._is_started:
            self._is_started = True
            Thread(target=self._run, name="kgateway-sync", daemon=True).start()
        done: Deferred[T] = Deferred()
        self._calls.put((call, done))
        return done

    def stop(self) -> None:
        """
        End the thread after the calls that it has.
        """
        if self._is_started:
            self._is_started = False
            self._calls.put(None)

    def _run(self) -> None:
        while waiting := self._calls.get():
            call, done = waiting
            try:
                result = call()
            except Exception:
                result = Failure()
            self._call_from_thread(done.callback, result)
