"""
Repeated work of a broker, with a pause after each round.
"""

from collections.abc import Callable, Coroutine
from typing import Any

from twisted.internet.defer import CancelledError, Deferred, succeed
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure

from kgateway.log_messages import LogMessage


class Rounds:
    _log = Logger()

    def __init__(
        self,
        clock: IReactorTime,
        first_ms: int,
        interval_ms: int,
        work: Callable[[], Coroutine[Deferred[Any], Any, None]],
        failed: LogMessage,
    ) -> None:
        self._clock = clock
        self._interval_s = interval_ms / 1000
        self._work = work
        self._failed_message = failed
        self._round: Deferred[None] | None = None
        self._stopped = False
        self._timer = clock.callLater(first_ms / 1000, self._begin)

    def stop(self) -> None:
        """
        Begin no more rounds, and end the one under way.
        """
        self._stopped = True
        if self._timer.active():
            self._timer.cancel()
        if self._round:
            self._round.cancel()

    def finish(self) -> Deferred[None]:
        """
        Begin no more rounds. Fires once the one under way has ended by itself.
        """
        self._stopped = True
        if self._timer.active():
            self._timer.cancel()
        ended: Deferred[None] = Deferred()
        if self._round is None:
            return succeed(None)
        self._round.addCallback(lambda _: ended.callback(None))
        return ended

    def _begin(self) -> None:
        self._round = Deferred.fromCoroutine(self._work())
        self._round.addErrback(self._failed).addCallback(self._again)

    def _again(self, _: None) -> None:
        self._round = None
        if not self._stopped:
            self._timer = self._clock.callLater(self._interval_s, self._begin)

    def _failed(self, failure: Failure) -> None:
        if not failure.check(CancelledError):
            self._log.failure(self._failed_message, failure)
