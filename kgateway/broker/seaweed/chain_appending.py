"""
Appending to a chain: objects are created in any order, a few at a time, and acknowledged in theirs.

A create that fails may have been done all the same. So it is repeated unchanged, and then what is there is read: it has
our nonce, or somebody else was faster and the chain is no longer ours. What was created behind a number that is lost
does not count.
"""

from collections import deque
from collections.abc import Callable, Coroutine
from itertools import islice, takewhile
from typing import Any

from twisted.internet.defer import Deferred, fail
from twisted.logger import Logger
from twisted.python.failure import Failure

from kgateway.broker.seaweed.chain_folder import ChainFolder, Written
from kgateway.broker.seaweed.chain_object import ChainObject
from kgateway.broker.seaweed.grpc.status import RpcError, Status
from kgateway.broker.seaweed.refused import FilerRefused
from kgateway.broker.seaweed.retrying import Retrying

Make = Callable[[ChainObject], Coroutine[Any, Any, None]]

_NEVER = (Status.INVALID_ARGUMENT, Status.PERMISSION_DENIED, Status.UNAUTHENTICATED, Status.UNIMPLEMENTED)


class ChainLost(Exception):
    """
    Somebody else has a number of the chain that this process wanted: `winner` is what they wrote there.
    """

    def __init__(self, path: str, winner: ChainObject | None) -> None:
        self.winner = winner
        who = f"{winner.payload[:100]!r}" if winner else "nobody any more"
        number = f" number {winner.number}" if winner else ", where its mark has passed us,"
        super().__init__(f"{path}:{number} belongs to {who}")


async def win(folder: ChainFolder, written: Written, retrying: Retrying, patience_s: float) -> None:
    """
    Make an object the one with its number. ChainLost where another is that, and the last failure where even the time
    given is not enough to find out.
    """
    made = written.made

    async def attempt(seconds: float) -> None:
        unclear: Exception = RpcError(Status.ABORTED, f"{folder.path}: number {made.number} was there, and is not")
        try:
            if await folder.create(written, seconds):
                return
        except (RpcError, FilerRefused) as error:
            unclear = error
        found = await folder.object(made.number, seconds)
        if found is None:
            raise unclear
        if found.nonce != made.nonce:
            raise ChainLost(folder.path, found)

    await retrying.run(attempt, patience_s, _may_repeat)


def _may_repeat(error: Exception) -> bool:
    return isinstance(error, FilerRefused) or (isinstance(error, RpcError) and error.status not in _NEVER)


class _Appended:
    """
    An object on its way.
    """

    def __init__(self, made: ChainObject) -> None:
        self.made = made
        self.is_there = False
        self.acknowledged: Deferred[int] = Deferred()


class Appending:
    """
    What one process appends. Once it has failed it appends nothing more: where the chain ends now, only reading tells.
    """

    _log = Logger()

    def __init__(self, make: Make, at_once: int, reached: Callable[[ChainObject], None]) -> None:
        self.failure: Exception | None = None
        self._make = make
        self._at_once = at_once
        self._reached = reached
        self._queue: deque[_Appended] = deque()  # not begun
        self._begun: deque[_Appended] = deque()  # and not acknowledged, in order
        self._underway = 0

    @property
    def unacknowledged(self) -> ChainObject | None:
        """
        The first that may not be there yet.
        """
        waiting = self._begun or self._queue
        return waiting[0].made if waiting else None

    def has(self, found: ChainObject) -> bool:
        """
        Whether it is one of those on their way.
        """
        return any(each.made.nonce == found.nonce for each in (*self._begun, *self._queue))

    def append(self, made: ChainObject) -> Deferred[int]:
        """
        Fires with the number of the object when it is there, and all before it.
        """
        if self.failure:
            return fail(self.failure)
        appended = _Appended(made)
        self._queue.append(appended)
        self._go_on()
        return appended.acknowledged

    def _go_on(self) -> None:
        while self._queue and self._underway < self._at_once:
            appended = self._queue.popleft()
            self._begun.append(appended)
            self._underway += 1
            made = Deferred.fromCoroutine(self._make(appended.made))
            made.addCallbacks(self._there, self._not_there, callbackArgs=(appended,), errbackArgs=(appended,))
            made.addErrback(lambda failure: self._log.failure("An append could not be told of.", failure))

    def _there(self, _: None, appended: _Appended) -> None:
        self._underway -= 1
        appended.is_there = True
        while self._begun and self._begun[0].is_there:
            first = self._begun.popleft()
            self._reached(first.made)
            first.acknowledged.callback(first.made.number)
        self._go_on()

    def _not_there(self, failure: Failure, appended: _Appended) -> None:
        self._underway -= 1
        if appended not in self._begun:  # it has failed already, behind another one
            return
        assert isinstance(failure.value, Exception)
        self.failure = self.failure or failure.value
        before = list(takewhile(lambda each: each is not appended, self._begun))
        failed = [*islice(self._begun, len(before), None), *self._queue]
        self._begun, self._queue = deque(before), deque()
        for each in failed:
            each.acknowledged.errback(failure.value)
