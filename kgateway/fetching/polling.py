"""
The wait of a fetch for more than there is now: a long poll.

It sleeps until a partition moves, then looks once for all that moved in that turn of the reactor. A client that waits
for many bytes would have them read anew with each append, so between two looks it pauses for a quarter of the time it
has waited: all looks together then cost a few times the last one.

Clients that wait for half a second are many, and mostly nothing comes. So the ends of waits fall together on a grid of
time, a little early rather than late: one turn of the reactor then answers many of them.

It ends with enough bytes, with something the client has to hear at once, or when its time is up. To cancel it is to
say: answer now, with what is there.
"""

from collections.abc import Callable

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall, IReactorTime

from kgateway.fetching.reading import Reading
from kgateway.fetching.wanted import Answer

_PAUSE = 0.25
GRID_S = 0.1  # for waits that are some times as long
_GRID_TIMES = 4
_EPSILON = 1e-6  # sums of floats fall a little short of the grid


class LongPoll:
    """
    Begins with a first look that did not bring enough.
    """

    def __init__(
        self, reading: Reading, look: Callable[[], Reading], min_bytes: int, max_wait_s: float, clock: IReactorTime
    ) -> None:
        self.result: Deferred[list[Answer]] = Deferred(lambda _: self._finish())
        self._seen = self._reading = reading
        self._look = look
        self._min_bytes = min_bytes
        self._clock = clock
        self._started = clock.seconds()
        self._moved_meanwhile = False
        self._ended = False
        self._next: IDelayedCall | None = None
        self._end = clock.callLater(_on_grid(self._started, max_wait_s), self._time_is_up)
        self._cancels = [partition.watch(self._moved) for partition in reading.partitions]
        if reading.outstanding:
            reading.call_at_end(self._looked)

    def _moved(self) -> None:
        if self._reading.outstanding:
            self._moved_meanwhile = True
        elif self._next is None:
            waited = self._clock.seconds() - self._started
            self._next = self._clock.callLater(waited * _PAUSE if self._min_bytes > 1 else 0, self._look_again)

    def _look_again(self) -> None:
        self._next = None
        self._reading = self._look()
        if self._reading.outstanding:
            self._reading.call_at_end(self._looked)
        else:
            self._looked()

    def _looked(self) -> None:
        if self._ended:
            return
        self._seen = self._reading
        if self._seen.suffices(self._min_bytes) or not self._end.active():
            self._finish()
        elif self._moved_meanwhile:
            self._moved_meanwhile = False
            self._moved()

    def _time_is_up(self) -> None:
        if self._next:
            self._next.cancel()
            self._look_again()
        elif not self._reading.outstanding:
            self._finish()

    def _finish(self) -> None:
        self._ended = True
        for cancel in self._cancels:
            cancel()
        for call in (self._next, self._end):
            if call and call.active():
                call.cancel()
        self.result.callback(self._seen.answers)


def _on_grid(now: float, wait_s: float) -> float:
    """
    The wait, cut so that it ends where others end.
    """
    if wait_s < _GRID_TIMES * GRID_S:
        return wait_s
    return wait_s - (now + wait_s + _EPSILON) % GRID_S + _EPSILON
