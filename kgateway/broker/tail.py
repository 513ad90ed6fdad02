"""
The newest batches of a log, in memory.

Beside the batches stand two more lists: at which offset each begins, and how many bytes come before it. By the one a
read finds where to begin, by the other where to end, each by bisection. What is cut at the front stays in the lists
until it is half of them, so that cutting costs nothing that grows with what is kept.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sized
from typing import Generic, TypeVar

B = TypeVar("B", bound=Sized)  # a batch, or what stands for one and has its length

_FEW = 64  # batches that were cut and may stay in the lists for now


class Tail(Generic[B]):
    """
    Batches in a row, oldest first.
    """

    __slots__ = ("_bases", "_batches", "_first", "_positions", "end")

    def __init__(self, start: int) -> None:
        self.end = start  # the offset that comes next
        self._batches: list[B | None] = []
        self._bases: list[int] = []
        self._positions = [0]  # where in the bytes of the log each batch begins, and where the last one ends
        self._first = 0  # of those that are kept

    @property
    def start(self) -> int:
        """
        The first offset that is kept.
        """
        return self._bases[self._first] if self._first < len(self._bases) else self.end

    @property
    def size(self) -> int:
        """
        The bytes that are kept.
        """
        return self._positions[-1] - self._positions[self._first]

    @property
    def first(self) -> B | None:
        """
        The oldest batch that is kept.
        """
        return self._batches[self._first] if self._first < len(self._batches) else None

    @property
    def first_end(self) -> int:
        """
        The offset behind that.
        """
        return self._end_of(self._first)

    @property
    def batches(self) -> list[B]:
        """
        All that is kept.
        """
        return self._between(self._first, len(self._batches))

    def add(self, data: B, base_offset: int, end: int) -> None:
        """
        One more batch, whose offsets end before `end`.
        """
        self._batches.append(data)
        self._bases.append(base_offset)
        self._positions.append(self._positions[-1] + len(data))
        self.end = end

    def read(self, offset: int, max_bytes: int, at_least_one: bool, stop: int) -> tuple[list[B], int]:
        """
        As many batches as fit from the one on that has the offset, none of which begins at `stop` or later, and their
        size. Whoever asks for less than `start` gets what there is.
        """
        positions = self._positions
        first = max(bisect_right(self._bases, offset) - 1, self._first)
        stopping = bisect_left(self._bases, stop)
        fitting = bisect_right(positions, positions[first] + max_bytes, first) - 1  # the first that does not fit
        last = min(max(fitting, first + at_least_one), stopping)
        if last <= first:
            return [], 0
        return self._between(first, last), positions[last] - positions[first]

    def from_offset(self, offset: int) -> list[B]:
        """
        All batches from the one on that has the offset.
        """
        return self._between(self._with(offset), len(self._batches))

    def at(self, offset: int) -> tuple[B, int] | None:
        """
        The batch that has the offset, and the offset behind it.
        """
        place = self._with(offset)
        batch = self._batches[place] if place < len(self._batches) else None
        return None if batch is None else (batch, self._end_of(place))

    def size_from(self, offset: int) -> int:
        """
        The bytes from that batch on.
        """
        return self._positions[-1] - self._positions[self._with(offset)]

    def cut(self, offset: int) -> None:
        """
        Keep no batch that ends before or at the offset.
        """
        self._drop(self._with(offset))

    def drop_first(self) -> None:
        """
        Keep the oldest batch no more.
        """
        self._drop(self._first + 1)

    def exchange(self, other: Callable[[B], B | None]) -> None:
        """
        Keep others in place of the oldest batches, as long as there are such.
        """
        for place in range(self._first, len(self._batches)):
            batch = self._batches[place]
            changed = None if batch is None else other(batch)
            if changed is None:
                break
            self._batches[place] = changed

    def _end_of(self, place: int) -> int:
        return self._bases[place + 1] if place + 1 < len(self._bases) else self.end

    def _with(self, offset: int) -> int:
        """
        Which batch has the offset.
        """
        if offset >= self.end:
            return len(self._bases)
        return max(bisect_right(self._bases, offset) - 1, self._first)

    def _between(self, first: int, last: int) -> list[B]:
        return [batch for batch in self._batches[first:last] if batch is not None]

    def _drop(self, first: int) -> None:
        for position in range(self._first, first):
            self._batches[position] = None
        self._first = first
        if first > _FEW and first > len(self._batches) // 2:
            del self._batches[:first], self._bases[:first], self._positions[:first]
            self._first = 0
