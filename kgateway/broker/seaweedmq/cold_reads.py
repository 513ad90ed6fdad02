"""
Reads of what only files have, in time also where the filer hangs.

How long a fetch may take, a read does not know. So one that takes long brings nothing for now, and goes on: when its
bytes have come they stay in memory for a while, and who waits for the partition is woken.
"""

from collections.abc import Callable, Coroutine
from typing import Any, NamedTuple

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure

from kgateway.wire.types import Buffer

PATIENCE_S = 0.25


class _Wanted(NamedTuple):
    offset: int
    max_bytes: int
    at_least_one: bool
    stop: int


class _Reading:
    """
    One read that is under way.
    """

    def __init__(self) -> None:
        self.waiting: dict[Deferred[list[Buffer]], IDelayedCall] = {}  # with what ends each one's patience
        self.is_late = False  # somebody has waited in vain


class ColdReads:
    """
    Of one partition.
    """

    _log = Logger()

    def __init__(
        self,
        read: Callable[[int, int, bool, int], Coroutine[Any, Any, list[Buffer]]],
        clock: IReactorTime,
        arrived: Callable[[], None],
    ) -> None:
        self._read = read
        self._clock = clock
        self._arrived = arrived  # called when what somebody has waited for in vain is here
        self._readings: dict[_Wanted, _Reading] = {}

    def read(self, offset: int, max_bytes: int, at_least_one: bool, stop: int) -> Deferred[list[Buffer]]:
        """
        Whole batches from the one on that has the offset; none where that takes too long.
        """
        answer: Deferred[list[Buffer]] = Deferred()
        wanted = _Wanted(offset, max_bytes, at_least_one, stop)
        begins = wanted not in self._readings
        reading = self._readings.setdefault(wanted, _Reading())
        reading.waiting[answer] = self._clock.callLater(PATIENCE_S, _in_vain, reading, answer)
        if begins:
            Deferred.fromCoroutine(self._read(*wanted)).addBoth(self._here, wanted)
        return answer

    def _here(self, found: list[Buffer] | Failure, wanted: _Wanted) -> None:
        reading = self._readings.pop(wanted)
        for answer, late in reading.waiting.items():
            late.cancel()
            answer.callback(found)  # a Failure becomes one of the Deferred
        if not reading.is_late:
            return
        if isinstance(found, Failure):
            error = found.getErrorMessage()
            self._log.info("offset {offset} cannot be read: {error}", offset=wanted.offset, error=error)
        else:
            self._arrived()


def _in_vain(reading: _Reading, answer: Deferred[list[Buffer]]) -> None:
    """
    Nothing has come in time.
    """
    reading.is_late = True
    del reading.waiting[answer]
    answer.callback([])
