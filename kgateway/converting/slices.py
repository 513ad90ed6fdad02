"""
Work on records that takes long, a slice at a time: however much there is of it, the reactor turns, and others are
served in between.

Few pieces of work are under way at once, for each may hold all records of a batch uncompressed. They take turns, so a
small one need not wait for the end of a large one; others wait in line. Producers have a line of their own, in which
they wait for no consumer.
"""

from collections import deque
from typing import Any, Generic, TypeVar

from twisted.internet.defer import Deferred
from twisted.logger import Logger
from twisted.python.failure import Failure

from kgateway.context import GatewayParts
from kgateway.records.steps import Steps

T = TypeVar("T")

AT_ONCE_MAX = 4
SLICE_S = 0.002


class _Work(Generic[T]):
    """
    Steps, and what they have come to.
    """

    def __init__(self, steps: Steps[T]) -> None:
        self.steps = steps
        self.come: Any = None  # what the last step asked for
        self.done: Deferred[T] = Deferred()


class Slices:
    """
    One line of such work.
    """

    _log = Logger()

    def __init__(self, gateway: GatewayParts) -> None:
        self._clock = gateway.clock
        self._in_thread = gateway.in_thread
        self._waiting: deque[_Work[Any]] = deque()
        self._ready: deque[_Work[Any]] = deque()  # begun, and no thread is busy with it
        self._begun = 0
        self._is_due = False

    def do(self, steps: Steps[T]) -> Deferred[T]:
        """
        Take all the steps, from the next turn of the reactor on. Fires with what they come to.
        """
        work = _Work(steps)
        self._waiting.append(work)
        self._go_on()
        return work.done

    def _go_on(self) -> None:
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
        self._go_on()

    def _step(self, work: _Work[Any], until: float) -> None:
        """
        Go on with one until its slice is over or it needs a thread.
        """
        come, work.come = work.come, None
        call = come.throwExceptionIntoGenerator(work.steps) if isinstance(come, Failure) else work.steps.send(come)
        while call is None and self._clock.seconds() < until:
            call = next(work.steps)
        if call is None:
            self._ready.append(work)
        else:
            self._in_thread(call).addBoth(self._back, work).addErrback(self._lost)

    def _back(self, come: object, work: _Work[Any]) -> None:
        work.come = come
        self._ready.append(work)
        self._go_on()

    def _end(self, work: _Work[Any], outcome: object) -> None:
        self._begun -= 1
        work.done.callback(outcome)  # with a Failure, it fails

    def _lost(self, failure: Failure) -> None:
        self._log.failure("work on records has got lost", failure)


class IncomingSlices(Slices):
    """
    For what producers send.
    """


class OutgoingSlices(Slices):
    """
    For what consumers read.
    """
