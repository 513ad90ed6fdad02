"""
A bound on the bytes of requests that the gateway holds at once, over all connections.

An incomplete frame reserves its whole size before more of it is read. Reservations that find no room wait in line, so
two half-read frames never each hold what the other needs. A frame that arrives whole and starts at once reserves
nothing. Small frames have a budget of their own: a few peers that announce 100 MiB and send
nothing stop only others that send as much.

A handler that fails may leave its request in a cycle of objects, which lives until Python collects cycles. Python
decides when by the number of objects and not by their size, so this module collects too.
"""

import gc
from collections import deque
from collections.abc import Callable

SMALL_FRAME_BYTES = 64 << 10
_SMALL_SHARE = 16  # one part in sixteen is for small frames
_SMALL_BUDGET_MIN = 4 << 20
_UNCOLLECTED_SHARE = 4  # a quarter of the large budget may be in cycles
YOUNG = 1  # the generation of objects that survived at most one collection


class Reservation:
    __slots__ = ("_budget", "granted", "size", "wake")

    def __init__(self, budget: "ByteBudget", size: int, wake: Callable[[], None]) -> None:
        self._budget: ByteBudget | None = budget
        self.size = size
        self.wake = wake
        self.granted = False

    def release(self) -> None:
        """
        Return the bytes, or leave the line. A second call does nothing.
        """
        budget, self._budget = self._budget, None
        if budget:
            budget.take_back(self)


class ByteBudget:
    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.used = 0
        self._line: deque[Reservation] = deque()

    @property
    def waiting(self) -> int:
        return len(self._line)

    def reserve(self, size: int, wake: Callable[[], None]) -> Reservation:
        """
        Reserve this many bytes, at most the limit. `wake` is called once they are granted, if they are not granted at
        once.
        """
        reservation = Reservation(self, min(size, self.limit), wake)
        if not self._line and self.used + reservation.size <= self.limit:
            self._grant(reservation)
        else:
            self._line.append(reservation)
        return reservation

    def take_back(self, reservation: Reservation) -> None:
        """
        Free the bytes of a reservation and grant those at the front of the line.
        """
        if reservation.granted:
            self.used -= reservation.size
        else:
            self._line.remove(reservation)
        while self._line and self.used + self._line[0].size <= self.limit:
            first = self._line.popleft()
            self._grant(first)
            first.wake()

    def _grant(self, reservation: Reservation) -> None:
        reservation.granted = True
        self.used += reservation.size


class RequestMemory:
    def __init__(self, total_bytes: int, frame_bytes_max: int) -> None:
        small = max(total_bytes // _SMALL_SHARE, _SMALL_BUDGET_MIN)
        self.small = ByteBudget(small)
        self.large = ByteBudget(max(total_bytes - small, frame_bytes_max))
        self._uncollected = 0  # bytes of large frames since the last collection

    def reserve(self, size: int, wake: Callable[[], None]) -> Reservation:
        if size <= SMALL_FRAME_BYTES:
            return self.small.reserve(size, wake)
        self._uncollected += size
        if self._uncollected > self.large.limit // _UNCOLLECTED_SHARE:
            self._uncollected = 0
            gc.collect(YOUNG)
        return self.large.reserve(size, wake)
