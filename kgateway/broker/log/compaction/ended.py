"""
How the transactions of a log ended, to who goes through it from one end to the other to compact it: by Kafka's rules.

What an aborted one wrote goes. A marker may go once nothing is left of its transaction, and that is seen when no batch
of the producer has come since the marker before.
"""

from collections.abc import Sequence

from kgateway.broker.aborted import AbortedTransaction
from kgateway.records.batch import Batch, BatchHeader
from kgateway.records.control import read_marker
from kgateway.wire.malformed import Malformed


class EndedTransactions:
    """
    One way through a log from any offset on, of which this is known to be aborted.
    """

    def __init__(self, aborted: Sequence[AbortedTransaction]) -> None:
        self._left: list[AbortedTransaction] = []
        self._ahead = sorted(aborted, key=lambda one: one.first_offset, reverse=True)
        self._aborted: dict[int, AbortedTransaction] = {}  # by producer, the last that began
        self._written: set[int] = set()  # the producers of which a batch has come since their last marker

    def is_aborted(self, header: BatchHeader) -> bool:
        """
        Whether this batch, which comes next, is of a transaction that will have been aborted.
        """
        if not header.is_transactional:
            return False
        self._reach(header.last_offset)
        self._written.add(header.producer_id)
        one = self._aborted.get(header.producer_id)
        return one is not None and header.last_offset <= one.last_offset

    def may_go(self, batch: Batch) -> bool:
        """
        Whether this marker, which comes next, marks nothing any more. One that says nothing does not either.
        """
        header = batch.header
        if not header.records_count:
            return True
        try:
            marker = read_marker(batch)
        except Malformed:
            return False
        if marker is None:
            return False
        self._reach(header.last_offset)
        is_left = header.producer_id in self._written
        self._written.discard(header.producer_id)
        one = self._aborted.get(header.producer_id)
        if one and is_left and header.last_offset == one.last_offset:
            self._left.append(one)
        return not is_left

    def taken(self) -> list[AbortedTransaction]:
        """
        Those of which something is left, and whose markers have come since this was asked last.
        """
        left, self._left = self._left, []
        return left

    def _reach(self, offset: int) -> None:
        while self._ahead and self._ahead[-1].first_offset <= offset:
            one = self._ahead.pop()
            self._aborted[one.producer_id] = one
