"""
Transactions that were aborted, whose records nobody is to see who reads what is committed.

Kafka tells of each the producer and the first offset. From there on all transactional batches of that producer are part
of it, up to the control batch that ends it.
"""

from collections.abc import Iterable

from kgateway.records.batch import BatchHeader


class Aborted:
    """
    Those of a part of a log. It is asked of each batch in order.
    """

    def __init__(self, transactions: Iterable[tuple[int, int]] = ()) -> None:
        self._to_come = sorted(((first, producer) for producer, first in transactions), reverse=True)
        self._open = set[int]()  # producers

    def has(self, header: BatchHeader) -> bool:
        """
        Whether the batch is part of one of them.
        """
        while self._to_come and self._to_come[-1][0] <= header.last_offset:
            self._open.add(self._to_come.pop()[1])
        if header.producer_id not in self._open:
            return False
        if header.is_control:
            self._open.remove(header.producer_id)
        return header.is_transactional
