"""
What the source needs to know of the logs of topics, wherever they are: behind servers, or in a folder.
"""

from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple, Protocol

from kgateway.client.offsets import Extent, Found, Partition
from kgateway.records.batch import Batch
from kgateway.spark.aborted import Aborted
from kgateway.spark.ranges import OffsetRange


class Window(NamedTuple):
    """
    Some batches in a row, the transactions that were aborted among them, and the offset behind them.
    """

    batches: list[Batch]
    aborted: Aborted
    next_offset: int


class Logs(Protocol):
    """
    The logs of some topics. All of it may raise Unreadable.
    """

    def partitions(self, topics: Iterable[str] | None = None) -> dict[str, list[Partition]]:
        """
        The partitions of these topics, as far as they are there, or of all.
        """

    def extents(self, wanted: Collection[Partition]) -> dict[Partition, Extent]:
        """
        What may be read of each; those that are not there are left out.
        """

    def at_time(self, wanted: Collection[Partition], timestamp_ms: int) -> dict[Partition, Found]:
        """
        The first record of this time or later.
        """

    def windows(self, wanted: OffsetRange) -> Iterator[Window]:
        """
        The batches that have these offsets, in order; the first may begin before them, and the last end behind them.
        Ends early where the log does. Raises Gone where the first of the offsets are not there any more.
        """

    def close(self) -> None:
        """
        Let go of connections and files.
        """


class Gone(Exception):
    """
    The log has no such offset: it begins and ends elsewhere.
    """

    def __init__(self, offset: int, extent: Extent) -> None:
        super().__init__(offset, extent)
        self.offset, self.extent = offset, extent
