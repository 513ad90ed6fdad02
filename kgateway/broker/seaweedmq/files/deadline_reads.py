"""
Reads from files, answered by a deadline, even if the filer hangs.

A read that takes longer than its reader can wait returns nothing for now, and continues. When it ends, whoever waits
for the partition is woken, and a result that nobody got is kept for a while, for the next reader of that offset.
Without that, a slow read could never be answered, because its range may be too large for the cache.
"""

from collections.abc import Callable, Coroutine
from typing import Any, NamedTuple

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure

from kgateway.wire.types import Buffer

PATIENCE_S = 0.25  # at most, however long a client waits: it may have asked for more than this partition
KEPT_S = 10.0


class _Limit(NamedTuple):
    max_bytes: int
    at_least_one: bool

    def fit(self, found: list[Buffer]) -> list[Buffer]:
        size = 0
        for number, batch in enumerate(found):
            size += len(batch)
            if size > self.max_bytes and (number or not self.at_least_one):
                return found[:number]
        return found


class _Reader(NamedTuple):
    limit: _Limit
    patience: IDelayedCall  # after which the reader gets nothing


class _PendingRead:
    """
    One read, for all readers of its offset.
    """

    def __init__(self) -> None:
        self.readers: dict[Deferred[list[Buffer]], _Reader] = {}
        self.is_late = False  # a reader has got nothing
        self.outcome: list[Buffer] | Failure | None = None  # not known yet

    def end(self, outcome: list[Buffer] | Failure) -> bool:
        """
        Answer the readers. Returns whether one of them has got something.
        """
        self.outcome, is_given = outcome, False
        for answer, reader in self.readers.items():
            reader.patience.cancel()
            given = outcome if isinstance(outcome, Failure) else reader.limit.fit(outcome)
            is_given = is_given or bool(given)
            answer.callback(given)  # a Failure becomes one of the Deferred
        return is_given

    def go_without(self, answer: Deferred[list[Buffer]]) -> None:
        self.is_late = True
        del self.readers[answer]
        answer.callback([])


class _KeptResult(NamedTuple):
    offset: int
    found: list[Buffer]
    end: IDelayedCall


class DeadlineReads:
    _log = Logger()

    def __init__(
        self,
        read: Callable[[int, int, bool, int], Coroutine[Any, Any, list[Buffer]]],
        clock: IReactorTime,
        arrived: Callable[[], None],
    ) -> None:
        self._read = read
        self._clock = clock
        self._arrived = arrived  # called when a late result has arrived
        self._readings: dict[int, _PendingRead] = {}  # under way, by their offsets
        self._kept: _KeptResult | None = None  # only the last one: nobody may ever ask for it

    def read(
        self, offset: int, max_bytes: int, at_least_one: bool, stop: int, due: float
    ) -> list[Buffer] | Deferred[list[Buffer]]:
        """
        Whole batches from the one that has the offset; none if the read takes longer than the reader may wait.
        """
        limit = _Limit(max_bytes, at_least_one)
        kept = self._take_kept_result(offset, limit)
        if kept is not None:
            return kept
        reading = self._readings.get(offset) or self._start_read(offset, max_bytes, stop)
        at_hand = self._take_kept_result(offset, limit)  # nothing had to be waited for
        return self._awaited(reading, limit, due) if at_hand is None else at_hand

    def _start_read(self, offset: int, max_bytes: int, stop: int) -> _PendingRead:
        """
        Start a read of at least one batch, because the next reader may want one.
        """
        reading = self._readings[offset] = _PendingRead()
        Deferred.fromCoroutine(self._read(offset, max_bytes, True, stop)).addBoth(self._here, offset)
        return reading

    def _awaited(self, reading: _PendingRead, limit: _Limit, due: float) -> Deferred[list[Buffer]]:
        answer: Deferred[list[Buffer]] = Deferred()
        if reading.outcome is None:
            patience_s = min(PATIENCE_S, max(0.0, due - self._clock.seconds()))
            reading.readers[answer] = _Reader(limit, self._clock.callLater(patience_s, reading.go_without, answer))
        else:
            answer.callback(reading.outcome)
        return answer

    def _here(self, outcome: list[Buffer] | Failure, offset: int) -> None:
        reading = self._readings.pop(offset)
        is_given = reading.end(outcome)
        if isinstance(outcome, Failure):
            if reading.is_late:
                error = outcome.getErrorMessage()
                self._log.info("cannot read offset {offset}: {error}", offset=offset, error=error)
            return
        if outcome and not is_given:
            self._keep(offset, outcome)
        if reading.is_late:
            self._arrived()

    def _keep(self, offset: int, found: list[Buffer]) -> None:
        self._forget()
        self._kept = _KeptResult(offset, found, self._clock.callLater(KEPT_S, self._forget))

    def _take_kept_result(self, offset: int, limit: _Limit) -> list[Buffer] | None:
        """
        The kept result for this offset, as far as it fits; `None` if there is none. It remains if nothing fits.
        """
        if self._kept is None or self._kept.offset != offset:
            return None
        taken = limit.fit(self._kept.found)
        if taken:
            self._forget()
        return taken

    def _forget(self) -> None:
        kept, self._kept = self._kept, None
        if kept and kept.end.active():
            kept.end.cancel()
