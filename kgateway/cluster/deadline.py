"""
The time that a client waits for a change of the cluster.
"""

from typing import TypeVar

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure

from kgateway.log_messages import LATE_CHANGE_FAILED
from kgateway.wire.errors import ErrorCode, KafkaError

T = TypeVar("T")


class Deadline:
    """
    The moment after which the client gets an answer though the change may still take effect. The change itself is never
    cancelled.
    """

    _log = Logger()

    def __init__(self, clock: IReactorTime, timeout_ms: int) -> None:
        self._clock = clock
        self._timeout_ms = timeout_ms
        self._ends = clock.seconds() + timeout_ms / 1000

    async def wait(self, work: Deferred[T]) -> T:
        waiting: Deferred[T] = Deferred()

        def failed(failure: Failure) -> None:
            if waiting.called:
                self._log_late(failure)
            else:
                waiting.errback(failure)

        work.addCallbacks(waiting.callback, failed)
        waiting.addTimeout(max(0, self._ends - self._clock.seconds()), self._clock, self._raise_late)
        return await waiting

    def _log_late(self, failure: Failure) -> None:
        """
        Log the failure. A refusal, such as of a topic that was deleted meanwhile, is news; anything else is a defect.
        """
        if failure.check(KafkaError):
            self._log.info("a change that its client no longer waits for was refused: {error}", error=failure.value)
        else:
            self._log.failure(LATE_CHANGE_FAILED, failure)

    def _raise_late(self, result: object, _: float) -> None:
        reason = f"it was not done within {self._timeout_ms} ms, and may still take effect"
        raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, reason)
