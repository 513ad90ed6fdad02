"""
Runs long work on records a slice at a time, however much there is, so that the reactor serves other clients in between.

Few works are under way at once, because each may hold all records of a batch uncompressed. They take turns, so a small
one need not wait for the end of a large one; others wait in line. Producers have a line of their own, in which they
wait for no consumer.
"""

from collections import deque
from typing import Any, Generic, TypeVar

from twisted.internet.defer import Deferred
from twisted.logger import Logger
from twisted.python.failure import Failure

from kgateway.context import GatewayParts
from kgateway.log_messages import CONVERSION_FAILED
from kgateway.records.slices import Steps

T = TypeVar("T")

AT_ONCE_MAX = 4
SLICE_S = 0.002


class _Work(Generic[T]):
    def __init__(self, steps: Steps[T]) -> None:
        self.steps = steps
        self.result: Any = None  # the result of the call that the last step yielded
        self.done: Deferred[T] = Deferred()


class Slices:
    _log = Logger()

    def __init__(self, gateway: GatewayParts) -> None:
        self._clock = gateway.clock
        self._in_thread = gateway.in_thread
        self._waiting: deque[_Work[Any]] = deque()
        self._ready: deque[_Work[Any]] = deque()  # begun, and not in a thread
        self._begun = 0
        self._is_due = False

    def do(self, steps: Steps[T]) -> Deferred[T]:
        """
        Run the work, from the next turn of the reactor on. Fires with its result.
        """
        work = _Work(steps)
        self._waiting.append(work)
        self._begin_waiting()
        return work.done

    def _begin_waiting(self) -> None:
        while self._waiting and self._begun < AT_ONCE_MAX:
            self._begun += 1
            self._ready.append(self._waiting.popleft())
        if self._ready and not self._is_due:
            self._is_due = True
            self._clock.callLater(0, self._turn)

    def _turn(self) -> None:
        self._is_due = False
        until = self._clock.seconds() + SLICE_S
        work = self._ready.popleft()
        try:
            self._step(work, until)
        except StopIteration as done:
            self._end(work, done.value)
        except BaseException:
            self._end(work, Failure())
        self._begin_waiting()

    def _step(self, work: _Work[Any], until: float) -> None:
        """
        Continue a work until its slice is over or it needs a thread.
        """
        result, work.result = work.result, None
        call = (
            result.throwExceptionIntoGenerator(work.steps) if isinstance(result, Failure) else work.steps.send(result)
        )
        while call is None and self._clock.seconds() < until:
            call = next(work.steps)
        if call is None:
            self._ready.append(work)
        else:
            self._in_thread(call).addBoth(self._thread_done, work).addErrback(self._lost)

    def _thread_done(self, result: object, work: _Work[Any]) -> None:
        work.result = result
        self._ready.append(work)
        self._begin_waiting()

    def _end(self, work: _Work[Any], outcome: object) -> None:
        self._begun -= 1
        work.done.callback(outcome)  # with a Failure, it fails

    def _lost(self, failure: Failure) -> None:
        self._log.failure(CONVERSION_FAILED, failure)


class IncomingSlices(Slices):
    """
    The line of producers.
    """


class OutgoingSlices(Slices):
    """
    The line of consumers.
    """
