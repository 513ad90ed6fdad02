"""
One change of a topic at a time: a second one is refused, or waits for the first.
"""

from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from twisted.internet.defer import Deferred, fail
from twisted.python.failure import Failure

from kgateway.wire.errors import ErrorCode, KafkaError


def being_changed(name: str) -> KafkaError:
    return KafkaError(ErrorCode.REQUEST_TIMED_OUT, f"topic {name} is being changed by another request; try again")


class ChangeLock:
    """
    Refuses a change of a topic while another one is made.
    """

    def __init__(self) -> None:
        self._names: set[str] = set()

    def __contains__(self, name: str) -> bool:
        return name in self._names

    @contextmanager
    def hold(self, name: str, refusal: Callable[[str], KafkaError] = being_changed) -> Iterator[None]:
        if name in self._names:
            raise refusal(name)
        self._names.add(name)
        try:
            yield
        finally:
            self._names.discard(name)


class _QueuedWork(NamedTuple):
    work: Callable[[], Awaitable[None]]
    done: Deferred[None]


class ChangeQueue:
    """
    Does work for the same name one after the other.
    """

    def __init__(self) -> None:
        self._queues: dict[str, deque[_QueuedWork]] = {}
        self._is_over = False
        self._ended = Deferred[None]()

    def do(self, name: str, work: Callable[[], Awaitable[None]]) -> Deferred[None]:
        if self._is_over:
            return fail(KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "the gateway is stopping"))
        waiting = _QueuedWork(work, Deferred())
        if name in self._queues:
            self._queues[name].append(waiting)
        else:
            self._queues[name] = deque([waiting])
            Deferred.fromCoroutine(self._work_off(name))
        return waiting.done

    async def stop(self) -> None:
        self._is_over = True
        if self._queues:
            await self._ended

    async def _work_off(self, name: str) -> None:
        queue = self._queues[name]
        while queue:
            work, done = queue.popleft()
            try:
                await work()
            except Exception:
                refusal = Failure()
                refusal.cleanFailure()  # its traceback leads here, to what waits for it
                done.errback(refusal)
            else:
                done.callback(None)
        del self._queues[name]
        if self._is_over and not self._queues:
            self._ended.callback(None)
