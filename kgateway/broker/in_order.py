"""
Work that is done one after the other, where it is about the same thing.
"""

from collections import deque
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from twisted.internet.defer import Deferred, fail
from twisted.python.failure import Failure

from kgateway.wire.errors import ErrorCode, KafkaError


class _Waiting(NamedTuple):
    work: Callable[[], Awaitable[None]]
    done: Deferred[None]


class InOrder:
    """
    Does it by name, in the order it comes.
    """

    def __init__(self) -> None:
        self._queues: dict[str, deque[_Waiting]] = {}
        self._is_over = False
        self._ended = Deferred[None]()

    def do(self, name: str, work: Callable[[], Awaitable[None]]) -> Deferred[None]:
        """
        Fires with what becomes of it.
        """
        if self._is_over:
            return fail(KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "the gateway stops"))
        waiting = _Waiting(work, Deferred())
        if name in self._queues:
            self._queues[name].append(waiting)
        else:
            self._queues[name] = deque([waiting])
            Deferred.fromCoroutine(self._work_off(name))
        return waiting.done

    async def stop(self) -> None:
        """
        Take nothing more, and do what was taken.
        """
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
