"""
Where the archive of a topic ends and its log goes on. Each offset is read from one of the two: the archive's, as far as
its manifest goes, from there; those behind them from the log, up to where it ends when the query begins.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from kgateway.client.offsets import Extent, Partition
from kgateway.spark.failures import Unreadable
from kgateway.spark.ranges import OffsetRange


@dataclass(frozen=True, slots=True)
class Seam:
    """
    What is read of the log, and what is in neither of the two, in words.
    """

    log: tuple[OffsetRange, ...]
    lost: tuple[str, ...]


def seam(ends: Mapping[int, int], extents: Mapping[Partition, Extent], *, may_lag: bool = False) -> Seam:
    """
    The log behind these ends of an archive. Without a server it may be known later than to the archive where it ends.
    """
    gone = ends.keys() - {partition.index for partition in extents}
    if gone:
        raise Unreadable(f"the archive has partition {min(gone)}, and the topic has none of that number")
    log, lost = [], []
    for partition, extent in sorted(extents.items()):
        start = ends.get(partition.index, extent.start)
        if start < extent.start:
            lost.append(
                f"{partition} is archived up to offset {start - 1}, and its log begins with {extent.start} now: "
                f"offsets {start} to {extent.start - 1} are in neither"
            )
        if start > extent.end and not may_lag:
            lost.append(
                f"{partition} ends at offset {extent.end}, and the archive has it up to {start - 1}: the topic was "
                "made anew since, or its log has lost its end"
            )
        behind = OffsetRange(partition, max(start, extent.start), extent.end)
        if len(behind):
            log.append(behind)
    return Seam(tuple(log), tuple(lost))
