"""
Appending to a chain: objects are created in any order, a few at a time, and acknowledged in the order of their numbers.

A create that fails may have been done all the same. So it is repeated unchanged, and then the object that is there is
read: it has our nonce, or another writer was faster and the chain is no longer ours. Objects created after a lost
number do not count.
"""

from collections import deque
from collections.abc import Callable, Coroutine
from itertools import islice, takewhile
from typing import Any

from twisted.internet.defer import Deferred, fail
from twisted.logger import Logger
from twisted.python.failure import Failure

from kgateway.broker.seaweed.calls.retries import FilerRefused, Retries
from kgateway.broker.seaweed.chain.chain_folder import ChainFolder, ChainObject, PreparedObject
from kgateway.broker.seaweed.grpc.status import RpcError, Status
from kgateway.log_messages import CANNOT_ACKNOWLEDGE

Make = Callable[[ChainObject], Coroutine[Any, Any, None]]

_NEVER = (Status.INVALID_ARGUMENT, Status.PERMISSION_DENIED, Status.UNAUTHENTICATED, Status.UNIMPLEMENTED)


class ChainLost(Exception):
    """
    Another writer has a number of the chain that this process wanted; `winner` is what it wrote there.
    """

    def __init__(self, path: str, winner: ChainObject | None) -> None:
        self.winner = winner
        if winner:
            reason = f"number {winner.number} belongs to another writer: {winner.payload[:100]!r}"
        else:
            reason = "its mark has passed the number that this process wanted"
        super().__init__(f"{path}: {reason}")


async def claim(folder: ChainFolder, prepared: PreparedObject, retries: Retries, patience_s: float) -> None:
    """
    Make this the object with its number. Raises ChainLost if another object has it, and the last failure if the time
    given is not enough to find out.
    """
    chain_object = prepared.chain_object

    async def attempt(seconds: float) -> None:
        unclear: Exception = RpcError(
            Status.ABORTED, f"{folder.path}: number {chain_object.number} was there, and is missing now"
        )
        try:
            if await folder.create(prepared, seconds):
                return
        except (RpcError, FilerRefused) as error:
            unclear = error
        found = await folder.object(chain_object.number, seconds)
        if found is None:
            raise unclear
        if found.nonce != chain_object.nonce:
            raise ChainLost(folder.path, found)

    await retries.run(attempt, patience_s, _may_repeat)


def _may_repeat(error: Exception) -> bool:
    return isinstance(error, FilerRefused) or (isinstance(error, RpcError) and error.status not in _NEVER)


class _PendingAppend:
    def __init__(self, chain_object: ChainObject) -> None:
        self.chain_object = chain_object
        self.is_there = False
        self.acknowledged: Deferred[int] = Deferred()


class ChainAppender:
    """
    Appends objects of one process to a chain. After a failure it appends nothing more, because only reading shows where
    the chain ends then.
    """

    _log = Logger()

    def __init__(self, make: Make, at_once: int, reached: Callable[[ChainObject], None]) -> None:
        self.failure: Exception | None = None
        self._make = make
        self._at_once = at_once
        self._reached = reached
        self._queue: deque[_PendingAppend] = deque()  # not begun
        self._begun: deque[_PendingAppend] = deque()  # and not acknowledged, in order
        self._underway = 0

    @property
    def unacknowledged(self) -> ChainObject | None:
        """
        The first object that may not be there yet.
        """
        waiting = self._begun or self._queue
        return waiting[0].chain_object if waiting else None

    def has(self, found: ChainObject) -> bool:
        return any(each.chain_object.nonce == found.nonce for each in (*self._begun, *self._queue))

    def append(self, chain_object: ChainObject) -> Deferred[int]:
        """
        Fires with the number of the object when that and all before it are there.
        """
        if self.failure:
            return fail(self.failure)
        appended = _PendingAppend(chain_object)
        self._queue.append(appended)
        self._begin_next()
        return appended.acknowledged

    def _begin_next(self) -> None:
        while self._queue and self._underway < self._at_once:
            appended = self._queue.popleft()
            self._begun.append(appended)
            self._underway += 1
            creating = Deferred.fromCoroutine(self._make(appended.chain_object))
            creating.addCallbacks(self._there, self._not_there, callbackArgs=(appended,), errbackArgs=(appended,))
            creating.addErrback(lambda failure: self._log.failure(CANNOT_ACKNOWLEDGE, failure))

    def _there(self, _: None, appended: _PendingAppend) -> None:
        self._underway -= 1
        appended.is_there = True
        while self._begun and self._begun[0].is_there:
            first = self._begun.popleft()
            self._reached(first.chain_object)
            first.acknowledged.callback(first.chain_object.number)
        self._begin_next()

    def _not_there(self, failure: Failure, appended: _PendingAppend) -> None:
        self._underway -= 1
        if appended not in self._begun:  # it has failed already, after another one
            return
        assert isinstance(failure.value, Exception)
        self.failure = self.failure or failure.value
        before = list(takewhile(lambda each: each is not appended, self._begun))
        failed = [*islice(self._begun, len(before), None), *self._queue]
        self._begun, self._queue = deque(before), deque()
        for each in failed:
            each.acknowledged.errback(failure.value)
