"""
Frames that a connection has received and not started, and the memory that is reserved for them.

Most frames start in the moment they come and never reserve anything: only what has to wait is accounted for.
"""

from collections import deque
from collections.abc import Callable

from kgateway.server.budget import Reservation

QUEUED_BYTES_MAX = 1 << 20  # above, reading pauses
QUEUED_FRAMES_MAX = 1_000

Reserve = Callable[[int], Reservation]
QueuedFrame = tuple[bytes, Reservation | None]


class FrameQueue:
    """
    First in, first out.
    """

    __slots__ = ("_bytes", "beginning", "frames")

    def __init__(self) -> None:
        self.beginning: Reservation | None = None  # for the frame that has begun
        self.frames: deque[QueuedFrame] = deque()
        self._bytes = 0

    def extend(self, frames: list[bytes]) -> None:
        """
        These frames are complete; the first of them is the one that had begun.
        """
        for frame in frames:
            self.frames.append((frame, self.beginning))
            self._bytes += len(frame)
            self.beginning = None

    def take(self) -> QueuedFrame:
        """
        The next one, and who takes it has to release what is reserved for it.
        """
        queued = self.frames.popleft()
        self._bytes -= len(queued[0])
        return queued

    def account(self, declared: int, reserve: Reserve) -> None:
        """
        Reserve memory for what waits here, and for the size declared by a frame that has begun.
        """
        if declared and not self.beginning:
            self.beginning = reserve(declared)
        for place in range(len(self.frames) - 1, -1, -1):
            frame, reservation = self.frames[place]
            if reservation:
                break  # those before it are accounted for
            self.frames[place] = frame, reserve(len(frame))

    @property
    def is_heavy(self) -> bool:
        """
        Whether there is so much, or so little memory for it, that no more should be read.
        """
        if self._bytes > QUEUED_BYTES_MAX or len(self.frames) > QUEUED_FRAMES_MAX:
            return True
        last = self.frames[-1][1] if self.frames else None
        return any(held and not held.granted for held in (last, self.beginning))

    def clear(self) -> None:
        """
        Forget all frames.
        """
        held = [reservation for _, reservation in self.frames] + [self.beginning]
        self.frames.clear()
        self._bytes, self.beginning = 0, None
        for reservation in held:
            if reservation:
                reservation.release()
