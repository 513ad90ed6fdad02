"""
What a partition remembers of transactions: which are open, and which were aborted.

What is before the last stable offset has been decided, and nothing of it will change. Its end is where the first
transaction begins that is open, or has ended with a marker that is not safe yet.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from kgateway.broker.aborted import AbortedTransaction, AbortedTransactions


@dataclass(slots=True)
class PartitionTransactions:
    """
    Those of one partition.
    """

    open: dict[int, int] = field(default_factory=dict)  # producer id -> where its transaction begins; by that
    aborted: AbortedTransactions = field(default_factory=AbortedTransactions)
    # Where those began that have ended last, and where their markers are.
    _unsafe: deque[tuple[int, int]] = field(default_factory=deque, compare=False)

    @property
    def any_undecided(self) -> bool:
        """
        Whether one is open, or was until lately.
        """
        return bool(self.open or self._unsafe)

    def begin(self, producer_id: int, offset: int) -> None:
        """
        A record of a transaction has this offset.
        """
        self.open.setdefault(producer_id, offset)

    def end(self, producer_id: int, marker_offset: int, *, commits: bool) -> None:
        """
        The transaction of this producer has a marker, if one was open here.
        """
        first_offset = self.open.pop(producer_id, None)
        if first_offset is None:
            return
        self._unsafe.append((first_offset, marker_offset))
        if not commits:
            stable = next(iter(self.open.values()), marker_offset + 1)
            self.aborted.add(AbortedTransaction(producer_id, first_offset, marker_offset, stable))

    def compacted(self, end: int) -> None:
        """
        Before this offset is something that compaction has left. It comes to nothing that is undecided: what began
        before has ended, also where nothing is left that says so.
        """
        self.open = {producer_id: began for producer_id, began in self.open.items() if began >= end}

    def settle(self, high_watermark: int) -> None:
        """
        Markers before this offset are safe.
        """
        while self._unsafe and self._unsafe[0][1] < high_watermark:
            self._unsafe.popleft()

    def stable(self, log_start: int, high_watermark: int) -> int:
        """
        The offset before which nothing is open, of what is there and safe.
        """
        self.settle(high_watermark)
        first = next(iter(self.open.values()), high_watermark)
        if self._unsafe:
            first = min(first, *(began for began, _ in self._unsafe))
        return max(log_start, min(first, high_watermark))

    def reopen(self, open_ones: Iterable[tuple[int, int]]) -> None:
        """
        These were open when somebody looked: producer ids, and where their transactions begin.
        """
        self.open = dict(sorted(open_ones, key=lambda one: one[1]))
