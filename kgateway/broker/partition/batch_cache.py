"""
The newest batches of a log, in memory.

Two more lists have the offset at which each batch begins, and how many bytes stand before it. In the one a read finds
where to begin, in the other where to end, each by bisection. What is cut at the front stays in the lists until it is
half of them, so the cost of cutting does not grow with the number of batches.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sized
from typing import Generic, TypeVar

B = TypeVar("B", bound=Sized)  # a batch, or what stands for one and has its length

_FEW = 64  # batches that were cut and may stay in the lists for now


class BatchCache(Generic[B]):
    """
    Batches in a row, oldest first.
    """

    __slots__ = ("_bases", "_batches", "_first", "_positions", "end")

    def __init__(self, start: int) -> None:
        self.end = start  # the offset of the next batch
        self._batches: list[B | None] = []
        self._bases: list[int] = []
        self._positions = [0]  # where in the bytes of the log each batch begins, and where the last one ends
        self._first = 0  # the index of the first batch that is kept

    @property
    def start(self) -> int:
        return self._bases[self._first] if self._first < len(self._bases) else self.end

    @property
    def size(self) -> int:
        return self._positions[-1] - self._positions[self._first]

    @property
    def first(self) -> B | None:
        return self._batches[self._first] if self._first < len(self._batches) else None

    @property
    def first_end(self) -> int:
        return self._end_of(self._first)

    @property
    def batches(self) -> list[B]:
        return self._between(self._first, len(self._batches))

    def add(self, data: B, base_offset: int, end: int) -> None:
        """
        Add a batch whose offsets end before `end`.
        """
        self._batches.append(data)
        self._bases.append(base_offset)
        self._positions.append(self._positions[-1] + len(data))
        self.end = end

    def read(self, offset: int, max_bytes: int, at_least_one: bool, stop: int) -> tuple[list[B], int]:
        """
        As many batches as fit, from the one that has the offset on, none of which begins at `stop` or later; and their
        size. If the offset is below `start`, they begin with the first batch.
        """
        positions = self._positions
        first = max(bisect_right(self._bases, offset) - 1, self._first)
        stopping = bisect_left(self._bases, stop)
        too_large = (
            bisect_right(positions, positions[first] + max_bytes, first) - 1
        )  # the first batch that does not fit
        last = min(max(too_large, first + at_least_one), stopping)
        if last <= first:
            return [], 0
        return self._between(first, last), positions[last] - positions[first]

    def from_offset(self, offset: int) -> list[B]:
        return self._between(self._index_of(offset), len(self._batches))

    def at(self, offset: int) -> tuple[B, int] | None:
        """
        The batch that has the offset, and the offset after it.
        """
        index = self._index_of(offset)
        batch = self._batches[index] if index < len(self._batches) else None
        return None if batch is None else (batch, self._end_of(index))

    def size_from(self, offset: int) -> int:
        return self._positions[-1] - self._positions[self._index_of(offset)]

    def cut(self, offset: int) -> None:
        """
        Drop the batches that end at the offset or before it.
        """
        self._drop(self._index_of(offset))

    def drop_first(self) -> None:
        self._drop(self._first + 1)

    def exchange(self, other: Callable[[B], B | None]) -> None:
        """
        Replace batches, from the oldest on, until `other` returns none.
        """
        for index in range(self._first, len(self._batches)):
            batch = self._batches[index]
            changed = None if batch is None else other(batch)
            if changed is None:
                break
            self._batches[index] = changed

    def _end_of(self, index: int) -> int:
        return self._bases[index + 1] if index + 1 < len(self._bases) else self.end

    def _index_of(self, offset: int) -> int:
        if offset >= self.end:
            return len(self._bases)
        return max(bisect_right(self._bases, offset) - 1, self._first)

    def _between(self, first: int, last: int) -> list[B]:
        return [batch for batch in self._batches[first:last] if batch is not None]

    def _drop(self, first: int) -> None:
        for index in range(self._first, first):
            self._batches[index] = None
        self._first = first
        if first > _FEW and first > len(self._batches) // 2:
            del self._batches[:first], self._bases[:first], self._positions[:first]
            self._first = 0
