"""
The wait of a fetch for more records than there are: a long poll.

It sleeps until a partition moves. Once those who moved it are answered, it reads all that moved in that turn of the
reactor, and is answered in the same turn (action_queue.py). If the client waits for many bytes, each append would cause
another read of all of them, so at least a quarter of the time that it has waited lies between two reads: all reads
together then cost a few times the last one. A read for which this is too soon is added to the same queue later.

It ends when there are enough bytes, when the client must learn something at once, or when its time is up. Cancelling
its response means: answer now, with what there is.

Many clients wait for half a second, and mostly nothing comes. So the ends of waits are rounded to a grid of time, a
little early rather than late: one timer ends many of them, in one turn of the reactor.
"""

from collections.abc import Callable
from typing import NamedTuple, Protocol

from twisted.internet.interfaces import IDelayedCall
from twisted.logger import Logger

from kgateway.context import Context, GatewayParts
from kgateway.fetch.reader import ReadPass
from kgateway.fetch.sessions import ResponsePartition
from kgateway.late_response import LateResponse
from kgateway.log_messages import LONG_POLL_FAILED
from kgateway.wire.schema import Message

GRID_S = 0.1  # for waits that are at least four times as long
_GRID_TIMES = 4
_EPSILON = 1e-6  # sums of floats fall a little short of the grid
_PAUSE = 0.25  # of the time that a poll has waited


class TimedWait(Protocol):
    def end_in_time(self) -> None: ...


class _SharedTimer(NamedTuple):
    timer: IDelayedCall
    waiting: dict[TimedWait, None]


class PollTimers:
    _log = Logger()

    def __init__(self, gateway: GatewayParts) -> None:
        self._clock = gateway.clock
        self._moments: dict[float, _SharedTimer] = {}

    def add(self, waiting: TimedWait, wait_s: float) -> float:
        """
        End the wait after this time. Return the moment of its end.
        """
        now = self._clock.seconds()
        moment = now + wait_s
        if wait_s >= _GRID_TIMES * GRID_S:
            moment = (moment + _EPSILON) // GRID_S * GRID_S
        together = self._moments.get(moment)
        if together is None:
            timer = self._clock.callLater(moment - now, self._end, moment)
            together = self._moments[moment] = _SharedTimer(timer, {})
        together.waiting[waiting] = None
        return moment

    def remove(self, waiting: TimedWait, moment: float) -> None:
        together = self._moments.get(moment)
        if together and waiting in together.waiting:
            del together.waiting[waiting]
            if not together.waiting:
                del self._moments[moment]
                together.timer.cancel()

    def _end(self, moment: float) -> None:
        for waiting in self._moments.pop(moment).waiting:
            try:
                waiting.end_in_time()
            except Exception:
                self._log.failure(LONG_POLL_FAILED)


class LongPoll:
    """
    Starts after a read that did not bring enough. Its response is made of the last read.
    """

    __slots__ = (
        "_actions",
        "_cancels",
        "_clock",
        "_end_at",
        "_ends",
        "_min_bytes",
        "_moved_meanwhile",
        "_next",
        "_overdue",
        "_queued",
        "_read_at",
        "_reading",
        "_respond",
        "_seen",
        "_started",
        "response",
    )

    def __init__(
        self,
        reading: ReadPass,
        respond: Callable[[list[ResponsePartition]], Message],
        min_bytes: int,
        max_wait_s: float,
        context: Context,
    ) -> None:
        self.response = LateResponse(self._finish)
        self._respond = respond
        self._seen = self._reading = reading
        self._min_bytes = min_bytes
        self._clock = context.clock
        self._actions = context.actions
        self._ends = context.service(PollTimers)
        self._started = self._read_at = self._clock.seconds()
        self._moved_meanwhile = self._overdue = False
        self._queued = False  # whether a read is due as an action
        self._next: IDelayedCall | None = None  # queues a read after a pause
        self._end_at = self._ends.add(self, max_wait_s)
        self._cancels = [partition.watch(self._partition_moved) for partition in reading.partitions]
        if reading.outstanding:
            reading.call_when_read(self._read_ended)

    def end_in_time(self) -> None:
        """
        End after the read that is under way or due, if there is one.
        """
        self._overdue = True
        if self._next:
            self._next.cancel()
            self._read_again()
        elif self._queued:
            self._read_queued()
        elif not self._reading.outstanding:
            self._finish()

    def _partition_moved(self) -> None:
        if self._reading.outstanding:
            self._moved_meanwhile = True
        elif not self._queued and self._next is None:
            pause = self._pause() if self._min_bytes > 1 else 0
            if pause > 0:
                self._next = self._clock.callLater(pause, self._queue_read)
            else:
                self._queue_read()

    def _pause(self) -> float:
        now = self._clock.seconds()
        return (now - self._started) * _PAUSE - (now - self._read_at)

    def _queue_read(self) -> None:
        self._next = None
        self._queued = True
        self._actions.add(self._read_queued)

    def _read_queued(self) -> None:
        if self._queued:
            self._queued = False
            self._read_again()

    def _read_again(self) -> None:
        self._next = None
        self._read_at = self._clock.seconds()
        self._reading = self._reading.again()
        if self._reading.outstanding:
            self._reading.call_when_read(self._read_ended)
        else:
            self._read_ended()

    def _read_ended(self) -> None:
        if self.response.ended:
            return
        self._seen = self._reading
        if self._seen.suffices(self._min_bytes) or self._overdue:
            self._finish()
        elif self._moved_meanwhile:
            self._moved_meanwhile = False
            self._partition_moved()

    def _finish(self) -> None:
        for cancel in self._cancels:
            cancel()
        if self._next:
            self._next.cancel()
            self._next = None
        self._queued = False
        if not self._overdue:
            self._ends.remove(self, self._end_at)
        self.response.end(lambda: self._respond(self._seen.answers))
