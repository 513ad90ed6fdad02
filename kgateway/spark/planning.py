"""
From offsets to what tasks read.
"""

import math
from collections.abc import Iterable, Mapping
from itertools import pairwise

from kgateway.client.offsets import Extent, Partition
from kgateway.spark.bounds import Offsets
from kgateway.spark.ranges import OffsetRange


def split(ranges: Iterable[OffsetRange], min_partitions: int, most: int) -> list[OffsetRange]:
    """
    At least so many ranges as are wanted, if there are so many offsets; the larger ones are cut into more. None has
    more than `most` offsets, unless that is 0.
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


def limited(starts: Mapping[Partition, int], ends: Mapping[Partition, int], most: int) -> Offsets:
    """
    Ends that are no more than so many offsets away, all together, each partition with its share.
    """
    sizes = {one: max(ends[one] - starts[one], 0) for one in ends}
    total = sum(sizes.values())
    if total <= most:
        return dict(ends)
    # As Spark's own source: who has less than one offset as its share gets one.
    shares = {one: most * size / total for one, size in sizes.items()}
    return {
        one: min(ends[one], starts[one] + (math.ceil(share) if share < 1 else math.floor(share)))
        for one, share in shares.items()
    }


def within(wanted: OffsetRange, extent: Extent) -> tuple[OffsetRange, str | None]:
    """
    What of a range is there, and what is to be said of the rest.
    """
    start, end = (min(max(at, extent.start), extent.end) for at in (wanted.start, wanted.end))
    found = OffsetRange(wanted.partition, start, max(start, end))
    if wanted.start < extent.start and len(wanted):
        last = min(extent.start, wanted.end) - 1
        return found, (
            f"{wanted.partition} begins with offset {extent.start} now, and offsets {wanted.start} to {last} were to "
            "be read: they were removed, as by retention or DeleteRecords"
        )
    if max(wanted.start, wanted.end) > extent.end:
        return found, (
            f"{wanted.partition} ends at offset {extent.end}, and {max(wanted.start, wanted.end)} was asked for: "
            "the topic was made anew since, its log has lost its end, or the offset is a mistake"
        )
    return found, None
