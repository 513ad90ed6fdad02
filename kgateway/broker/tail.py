"""
The newest batches of a log, in memory.

Beside the batches stand two more lists: at which offset each begins, and how many bytes come before it. By the one a
read finds where to begin, by the other where to end, each by bisection. What is cut at the front stays in the lists
until it is half of them, so that cutting costs nothing that grows with what is kept.
"""

from bisect import bisect_left, bisect_right

from kgateway.wire.types import Buffer

_FEW = 64  # batches that were cut and may stay in the lists for now


class Tail:
    """
    Batches in a row, oldest first.
    """

    __slots__ = ("_bases", "_batches", "_first", "_positions", "end")

    def __init__(self, start: int) -> None:
        self.end = start  # the offset that comes next
        self._batches: list[Buffer | None] = []
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
    def batches(self) -> list[Buffer]:
        """
        All that is kept.
        """
        return self._between(self._first, len(self._batches))

    def add(self, data: Buffer, base_offset: int, end: int) -> None:
        """
        One more batch, whose offsets end before `end`.
        """
        self._batches.append(data)
        self._bases.append(base_offset)
        self._positions.append(self._positions[-1] + len(data))
        self.end = end

    def read(self, offset: int, max_bytes: int, at_least_one: bool, stop: int) -> tuple[list[Buffer], int]:
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

    def from_offset(self, offset: int) -> list[Buffer]:
        """
        All batches from the one on that has the offset.
        """
        return self._between(max(bisect_right(self._bases, offset) - 1, self._first), len(self._batches))

    def cut(self, offset: int) -> None:
        """
        Keep no batch that ends before or at the offset.
        """
        until = len(self._bases) if offset >= self.end else bisect_right(self._bases, offset) - 1
        self._drop(max(until, self._first))

    def shrink(self, size: int, keep_from: int) -> None:
        """
        Keep no more than so many bytes, except for what is at `keep_from` or later.
        """
        within = bisect_left(self._positions, self._positions[-1] - size)
        self._drop(max(min(within, bisect_right(self._bases, keep_from) - 1), self._first))

    def _between(self, first: int, last: int) -> list[Buffer]:
        return [batch for batch in self._batches[first:last] if batch is not None]

    def _drop(self, first: int) -> None:
        for position in range(self._first, first):
            self._batches[position] = None
        self._first = first
        if first > _FEW and first > len(self._batches) // 2:
            del self._batches[:first], self._bases[:first], self._positions[:first]
            self._first = 0
