"""
Ranges of offsets, divided into tasks.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise

from kgateway.client.offsets import Extent
from kgateway.topic_partition import TopicPartition


@dataclass(frozen=True, slots=True, order=True)
class OffsetRange:
    """
    The offsets from `start` up to `end`, exclusive.
    """

    partition: TopicPartition
    start: int
    end: int

    def __len__(self) -> int:
        return max(self.end - self.start, 0)

    def __str__(self) -> str:
        return f"{self.partition}, offsets {self.start} to {self.end - 1}"


def split(ranges: Iterable[OffsetRange], min_partitions: int, most: int) -> list[OffsetRange]:
    """
    Cut ranges so that there are at least `min_partitions` of them, as far as there are offsets, and none has more than
    `most`, unless that is 0. The larger ranges are cut into more pieces.
    """
    ranges = [one for one in ranges if len(one)]
    pieces = [piece for one in ranges for piece in _cut(one, math.ceil(len(one) / most) if most else 1)]
    if len(pieces) >= min_partitions:
        return pieces
    total = sum(map(len, pieces))
    return [piece for one in pieces for piece in _cut(one, math.ceil(len(one) / total * min_partitions))]


def _cut(whole: OffsetRange, count: int) -> list[OffsetRange]:
    count = max(1, min(count, len(whole)))
    borders = [whole.start + len(whole) * number // count for number in range(count + 1)]
    return [OffsetRange(whole.partition, *ends) for ends in pairwise(borders)]


def limited(
    starts: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int], most: int
) -> dict[TopicPartition, int]:
    """
    Ends that admit at most this many offsets altogether; each partition gets its share.
    """
    sizes = {one: max(ends[one] - starts[one], 0) for one in ends}
    total = sum(sizes.values())
    if total <= most:
        return dict(ends)
    # As in Spark's own source: a share of less than one offset becomes one.
    shares = {one: most * size / total for one, size in sizes.items()}
    return {
        one: min(ends[one], starts[one] + (math.ceil(share) if share < 1 else math.floor(share)))
        for one, share in shares.items()
    }


def within(wanted: OffsetRange, extent: Extent) -> tuple[OffsetRange, str | None]:
    """
    The part of a range that the log has, and a message about the rest.
    """
    start, end = (min(max(at, extent.start), extent.end) for at in (wanted.start, wanted.end))
    found = OffsetRange(wanted.partition, start, max(start, end))
    if wanted.start < extent.start and len(wanted):
        last = min(extent.start, wanted.end) - 1
        return found, (
            f"{wanted.partition} begins with offset {extent.start} now, but offsets {wanted.start} to {last} were "
            "requested: they were deleted, for example by retention or DeleteRecords"
        )
    if max(wanted.start, wanted.end) > extent.end:
        return found, (
            f"{wanted.partition} ends at offset {extent.end}, but {max(wanted.start, wanted.end)} was requested: the "
            "topic was recreated, its log has lost its end, or the offset is wrong"
        )
    return found, None
