"""
Reads of what only files have, in time also where the filer hangs.

A read that takes longer than its reader can wait brings nothing for now, and goes on. When it ends, who waits for the
partition is woken, and what nobody has got is kept for a while: whoever asks for the offset next gets it. Else what
takes long could never be read, for it may be too large to be found in memory the next time.
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
    """
    How much a reader takes.
    """

    max_bytes: int
    at_least_one: bool

    def of(self, found: list[Buffer]) -> list[Buffer]:
        """
        As many of these batches as fit.
        """
        size = 0
        for number, batch in enumerate(found):
            size += len(batch)
            if size > self.max_bytes and (number or not self.at_least_one):
                return found[:number]
        return found


class _Reader(NamedTuple):
    """
    One who waits.
    """

    limit: _Limit
    patience: IDelayedCall  # at whose end it goes without


class _Reading:
    """
    One read, for all who want the offset.
    """

    def __init__(self) -> None:
        self.readers: dict[Deferred[list[Buffer]], _Reader] = {}
        self.is_late = False  # somebody has waited in vain
        self.outcome: list[Buffer] | Failure | None = None  # not known yet

    def end(self, outcome: list[Buffer] | Failure) -> bool:
        """
        Tell all who wait; whether one of them has got something.
        """
        self.outcome, is_given = outcome, False
        for answer, reader in self.readers.items():
            reader.patience.cancel()
            given = outcome if isinstance(outcome, Failure) else reader.limit.of(outcome)
            is_given = is_given or bool(given)
            answer.callback(given)  # a Failure becomes one of the Deferred
        return is_given

    def go_without(self, answer: Deferred[list[Buffer]]) -> None:
        """
        Nothing has come in time.
        """
        self.is_late = True
        del self.readers[answer]
        answer.callback([])


class _Kept(NamedTuple):
    """
    What nobody has got.
    """

    offset: int
    found: list[Buffer]
    end: IDelayedCall


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
        self._readings: dict[int, _Reading] = {}  # under way, by their offsets
        self._kept: _Kept | None = None  # of the last one only: memory is not for what nobody may come for

    def read(
        self, offset: int, max_bytes: int, at_least_one: bool, stop: int, due: float
    ) -> list[Buffer] | Deferred[list[Buffer]]:
        """
        Whole batches from the one on that has the offset; none where that takes longer than until it is due.
        """
        limit = _Limit(max_bytes, at_least_one)
        kept = self._taken(offset, limit)
        if kept is not None:
            return kept
        reading = self._readings.get(offset) or self._begun(offset, max_bytes, stop)
        at_hand = self._taken(offset, limit)  # nothing had to be waited for
        return self._awaited(reading, limit, due) if at_hand is None else at_hand

    def _begun(self, offset: int, max_bytes: int, stop: int) -> _Reading:
        """
        It is for one batch at least, whoever asks: the next one may want that.
        """
        reading = self._readings[offset] = _Reading()
        Deferred.fromCoroutine(self._read(offset, max_bytes, True, stop)).addBoth(self._here, offset)
        return reading

    def _awaited(self, reading: _Reading, limit: _Limit, due: float) -> Deferred[list[Buffer]]:
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
                self._log.info("offset {offset} cannot be read: {error}", offset=offset, error=error)
            return
        if outcome and not is_given:
            self._keep(offset, outcome)
        if reading.is_late:
            self._arrived()

    def _keep(self, offset: int, found: list[Buffer]) -> None:
        self._let_go()
        self._kept = _Kept(offset, found, self._clock.callLater(KEPT_S, self._let_go))

    def _taken(self, offset: int, limit: _Limit) -> list[Buffer] | None:
        """
        What is kept from this offset on, as far as it fits; `None` where nothing is. It stays where none of it fits.
        """
        if self._kept is None or self._kept.offset != offset:
            return None
        taken = limit.of(self._kept.found)
        if taken:
            self._let_go()
        return taken

    def _let_go(self) -> None:
        kept, self._kept = self._kept, None
        if kept and kept.end.active():
            kept.end.cancel()
