"""
What the source needs to know of the logs of topics, behind servers or in a folder.

A reader of committed records skips aborted transactions. Kafka names the producer and the first offset of each: from
there on all transactional batches of that producer belong to it, up to the control batch that ends it.
"""

from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple, Protocol

from kgateway.client.offsets import Extent, OffsetAndTimestamp
from kgateway.records.batch import Batch, BatchHeader
from kgateway.spark.logs.offset_range import OffsetRange
from kgateway.topic_partition import TopicPartition


class AbortedTransactions:
    """
    The aborted transactions in a part of a log. `has` must be called for each batch, in order.
    """

    def __init__(self, transactions: Iterable[tuple[int, int]] = ()) -> None:
        self._to_come = sorted(((first, producer) for producer, first in transactions), reverse=True)
        self._open = set[int]()  # producers

    def has(self, header: BatchHeader) -> bool:
        """
        Whether the batch belongs to an aborted transaction.
        """
        while self._to_come and self._to_come[-1][0] <= header.last_offset:
            self._open.add(self._to_come.pop()[1])
        if header.producer_id not in self._open:
            return False
        if header.is_control:
            self._open.remove(header.producer_id)
        return header.is_transactional


class Window(NamedTuple):
    """
    Successive batches, the aborted transactions among them, and the offset behind them.
    """

    batches: list[Batch]
    aborted: AbortedTransactions
    next_offset: int


class Logs(Protocol):
    """
    The logs of some topics. Every method may raise Unreadable.
    """

    def partitions(self, topics: Iterable[str] | None = None) -> dict[str, list[TopicPartition]]:
        """
        The partitions of these topics, as far as they exist, or of all.
        """

    def extents(self, wanted: Collection[TopicPartition]) -> dict[TopicPartition, Extent]:
        """
        The readable extent of each partition. Partitions that do not exist are left out.
        """

    def at_time(
        self, wanted: Collection[TopicPartition], timestamp_ms: int
    ) -> dict[TopicPartition, OffsetAndTimestamp]:
        """
        The first record of each partition with this timestamp or a later one.
        """

    def windows(self, wanted: OffsetRange) -> Iterator[Window]:
        """
        The batches that have these offsets, in order; the first may begin before them, and the last end behind them.
        Ends early where the log does. Raises OffsetGone where the first offsets do not exist any more.
        """

    def close(self) -> None: ...


class OffsetGone(Exception):
    """
    The log does not have this offset: it begins later, or ends earlier.
    """

    def __init__(self, offset: int, extent: Extent) -> None:
        super().__init__(offset, extent)
        self.offset, self.extent = offset, extent
