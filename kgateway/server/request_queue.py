"""
The requests of one connection, in their order: those that are received and not started, with the memory reserved for
them, and those that are started and not answered.

Most requests start as soon as they are received and never reserve memory. Only those that wait do.

The queues are lists: most connections wait for nothing, and an empty deque takes ten times the memory.
"""

from collections.abc import Callable
from typing import Any

from twisted.internet.defer import Deferred

from kgateway.late_response import LateResponse
from kgateway.server.budget import Reservation

QUEUED_BYTES_MAX = 1 << 20  # above, reading pauses
QUEUED_FRAMES_MAX = 1_000
STARTED_MAX = 1_000  # requests of one connection that have started and are unanswered

Reserve = Callable[[int], Reservation]
QueuedFrame = tuple[bytes, Reservation | None]

_NO_FRAMES: list[QueuedFrame] = []  # all empty queues share it; nothing is ever put into it


class FrameQueue:
    __slots__ = ("_bytes", "frames", "reservation_of_incomplete")

    def __init__(self) -> None:
        self.reservation_of_incomplete: Reservation | None = None
        self.frames = _NO_FRAMES
        self._bytes = 0

    def extend(self, frames: list[bytes]) -> None:
        """
        Add complete frames. If one was incomplete until now, it is the first of them.
        """
        if frames and not self.frames:
            self.frames = []
        for frame in frames:
            self.frames.append((frame, self.reservation_of_incomplete))
            self._bytes += len(frame)
            self.reservation_of_incomplete = None

    def take(self) -> QueuedFrame:
        """
        Take the next frame. The caller has to release its reservation.
        """
        queued = self.frames.pop(0)
        if not self.frames:
            self.frames = _NO_FRAMES
        self._bytes -= len(queued[0])
        return queued

    def reserve_memory(self, declared: int, reserve: Reserve) -> None:
        """
        Reserve memory for the frames that wait, and for the declared size of the incomplete frame.
        """
        if declared and not self.reservation_of_incomplete:
            self.reservation_of_incomplete = reserve(declared)
        for number in range(len(self.frames) - 1, -1, -1):
            frame, reservation = self.frames[number]
            if reservation:
                break  # and so have those before it
            self.frames[number] = frame, reserve(len(frame))

    @property
    def must_pause(self) -> bool:
        """
        Whether reading must pause: too much waits, or there is no memory for it.
        """
        if self._bytes > QUEUED_BYTES_MAX or len(self.frames) > QUEUED_FRAMES_MAX:
            return True
        last = self.frames[-1][1] if self.frames else None
        return any(reservation and not reservation.granted for reservation in (last, self.reservation_of_incomplete))

    def clear(self) -> None:
        reservations = [reservation for _, reservation in self.frames] + [self.reservation_of_incomplete]
        self.frames = _NO_FRAMES
        self._bytes, self.reservation_of_incomplete = 0, None
        for reservation in reservations:
            if reservation:
                reservation.release()


class HangUp(Exception):
    """
    No answer can be sent; the connection is closed instead.
    """


class PendingAnswer:
    """
    The answer to a request that has started. Once it is `ready`, `buffers` has it, or `hang_up` says why there
    is none and the connection is closed.
    """

    __slots__ = ("_on_ready", "_work", "buffers", "hang_up", "next_may_start", "polls", "ready")

    def __init__(self, *, next_may_start: bool, polls: bool) -> None:
        self.next_may_start = next_may_start
        self.ready = False
        self.buffers: list[bytes] = []
        self.hang_up: str | None = None
        self._on_ready: Callable[[], None] | None = None
        self.polls = polls
        self._work: LateResponse | Deferred[Any] | None = None

    @classmethod
    def of(cls, buffers: list[bytes]) -> "PendingAnswer":
        """
        An answer that is ready and waits only for its turn.
        """
        pending = cls(next_may_start=True, polls=False)
        pending.succeed(buffers)
        return pending

    @property
    def api(self) -> str:
        return ""

    def call_when_ready(self, listener: Callable[[], None]) -> None:
        """
        Call the listener once the answer is ready, or now if it is.
        """
        self._on_ready = listener
        if self.ready:
            listener()

    def follow(self, work: LateResponse | Deferred[Any]) -> None:
        """
        Follow the work that has this answer as its result. It ends with `succeed` or `fail`.
        """
        self._work = work

    def succeed(self, buffers: list[bytes]) -> None:
        self.buffers = buffers
        self._end()

    def fail(self, reason: str) -> None:
        self.hang_up = reason
        self._end()

    def cut_short(self) -> None:
        """
        End a long poll with what there is. Other work goes on.
        """
        if self.polls and self._work and not self.ready:
            self._work.cancel()

    def _end(self) -> None:
        self.ready = True
        if self._on_ready:
            self._on_ready()


class PendingAnswers(list[PendingAnswer]):
    """
    Answers leave in the order of their requests, so an answer may hold back those after it.
    """

    __slots__ = ()

    @property
    def next_may_start(self) -> bool:
        if not self:
            return True
        last = self[-1]
        return (last.ready or last.next_may_start) and len(self) < STARTED_MAX

    def expect(self, answer: PendingAnswer, wake: Callable[[], None], reservation: Reservation | None = None) -> None:
        """
        Wait for an answer. Until it is ready its request may hold a view of the frame, so the bytes of the frame stay
        reserved. A request that polls has no records, and needs no reservation.
        """

        def ready() -> None:
            if reservation:
                reservation.release()
            wake()

        self.append(answer)
        answer.call_when_ready(ready if reservation else wake)

    def cut_short(self) -> None:
        for answer in self:
            answer.cut_short()
