"""
The wait of a fetch for more than there is now: a long poll.

It sleeps until a partition moves, then looks once for all that moved in that turn of the reactor. A client that waits
for many bytes would have them read anew with each append, so between two looks it pauses for a quarter of the time it
has waited: all looks together then cost a few times the last one.

It ends with enough bytes, with something the client has to hear at once, or when its time is up. To cancel it is to
say: answer now, with what is there.
"""

from collections.abc import Callable

from twisted.internet.interfaces import IDelayedCall

from kgateway.context import Context
from kgateway.fetching.ends import Ends
from kgateway.fetching.reading import Reading
from kgateway.fetching.wanted import Answer
from kgateway.later import Later
from kgateway.wire.schema import Message

_PAUSE = 0.25


class LongPoll(Later):
    """
    Begins with a first look that did not bring enough; at the end the response is made of what was seen last.
    """

    __slots__ = (
        "_cancels",
        "_clock",
        "_end_at",
        "_ended",
        "_ends",
        "_min_bytes",
        "_moved_meanwhile",
        "_next",
        "_overdue",
        "_reading",
        "_respond",
        "_seen",
        "_started",
    )

    def __init__(
        self,
        reading: Reading,
        respond: Callable[[list[Answer]], Message],
        min_bytes: int,
        max_wait_s: float,
        context: Context,
    ) -> None:
        super().__init__()
        self._respond = respond
        self._seen = self._reading = reading
        self._min_bytes = min_bytes
        self._clock = context.clock
        self._ends = context.service(Ends)
        self._started = self._clock.seconds()
        self._moved_meanwhile = self._overdue = self._ended = False
        self._next: IDelayedCall | None = None
        self._end_at = self._ends.add(self, max_wait_s)
        self._cancels = [partition.watch(self._moved) for partition in reading.partitions]
        if reading.outstanding:
            reading.call_at_end(self._looked)

    def time_is_up(self) -> None:
        """
        End, after a look that is under way or due.
        """
        self._overdue = True
        if self._next:
            self._next.cancel()
            self._look_again()
        elif not self._reading.outstanding:
            self._finish()

    def _moved(self) -> None:
        if self._reading.outstanding:
            self._moved_meanwhile = True
        elif self._next is None:
            waited = self._clock.seconds() - self._started
            self._next = self._clock.callLater(waited * _PAUSE if self._min_bytes > 1 else 0, self._look_again)

    def _look_again(self) -> None:
        self._next = None
        self._reading = self._reading.again()
        if self._reading.outstanding:
            self._reading.call_at_end(self._looked)
        else:
            self._looked()

    def _looked(self) -> None:
        if self._ended:
            return
        self._seen = self._reading
        if self._seen.suffices(self._min_bytes) or self._overdue:
            self._finish()
        elif self._moved_meanwhile:
            self._moved_meanwhile = False
            self._moved()

    def cancel(self) -> None:
        """
        End with what there is.
        """
        if not self._ended:
            self._finish()

    def _finish(self) -> None:
        self._ended = True
        for cancel in self._cancels:
            cancel()
        if self._next:
            self._next.cancel()
            self._next = None
        if not self._overdue:
            self._ends.remove(self, self._end_at)
        self._end()

    def _response(self) -> Message:
        return self._respond(self._seen.answers)
