"""
How many bytes of requests the gateway holds at once, over all connections.

A frame reserves its size before it is read. Who finds no room waits in line, so half-read large frames cannot block one
another for ever. Small frames have a budget of their own: a few peers that announce 100 MiB and send nothing stop only
others that send as much.

A handler that fails may leave its request in a cycle of objects, where it is held until Python looks for such. That
depends on how many objects there are, and not on how large they are; so it is looked for here too.
"""

import gc
from collections import deque
from collections.abc import Callable

SMALL_FRAME_BYTES = 64 << 10
_SMALL_SHARE = 16  # this part of all is for small frames
_SMALL_BUDGET_MIN = 4 << 20
_UNSEEN_SHARE = 4  # so much of the large budget may be in cycles
_YOUNG = 1  # generations of objects: those that have not been looked at twice


class Reservation:
    """
    Bytes that are held, or waited for.
    """

    __slots__ = ("_budget", "granted", "size", "wake")

    def __init__(self, budget: "ByteBudget", size: int, wake: Callable[[], None]) -> None:
        self._budget: ByteBudget | None = budget
        self.size = size
        self.wake = wake
        self.granted = False

    def release(self) -> None:
        """
        Give the bytes back, or leave the line; a second time does nothing.
        """
        budget, self._budget = self._budget, None
        if budget:
            budget.take_back(self)


class ByteBudget:
    """
    A number of bytes, given out first come, first served.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.used = 0
        self._line: deque[Reservation] = deque()

    @property
    def waiting(self) -> int:
        """
        How many wait for their bytes.
        """
        return len(self._line)

    def reserve(self, size: int, wake: Callable[[], None]) -> Reservation:
        """
        Hold this many bytes, at most the limit. Where they are not granted at once, `wake` is called when they are.
        """
        reservation = Reservation(self, min(size, self.limit), wake)
        if not self._line and self.used + reservation.size <= self.limit:
            self._grant(reservation)
        else:
            self._line.append(reservation)
        return reservation

    def take_back(self, reservation: Reservation) -> None:
        """
        Free what was held, and let those in front of the line have it.
        """
        if reservation.granted:
            self.used -= reservation.size
        else:
            self._line.remove(reservation)
        while self._line and self.used + self._line[0].size <= self.limit:
            next_one = self._line.popleft()
            self._grant(next_one)
            next_one.wake()

    def _grant(self, reservation: Reservation) -> None:
        reservation.granted = True
        self.used += reservation.size


class RequestMemory:
    """
    The two budgets of a gateway.
    """

    def __init__(self, total_bytes: int, frame_bytes_max: int) -> None:
        small = max(total_bytes // _SMALL_SHARE, _SMALL_BUDGET_MIN)
        self.small = ByteBudget(small)
        self.large = ByteBudget(max(total_bytes - small, frame_bytes_max))
        self._unseen = 0  # bytes of large frames since cycles were last looked for

    def reserve(self, size: int, wake: Callable[[], None]) -> Reservation:
        """
        Hold the bytes of a frame of this size.
        """
        if size <= SMALL_FRAME_BYTES:
            return self.small.reserve(size, wake)
        self._unseen += size
        if self._unseen > self.large.limit // _UNSEEN_SHARE:
            self._unseen = 0
            gc.collect(_YOUNG)
        return self.large.reserve(size, wake)
