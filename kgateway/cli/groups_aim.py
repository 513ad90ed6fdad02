"""
Which offsets are asked for: the ways to say where a group is to go on reading.
"""

from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from kgateway.cli.groups_plan import Wanted
from kgateway.cli.times import iso, option_time_ms
from kgateway.client.cluster import Cluster
from kgateway.client.offsets import Extent, Partition, found


def add_aims(parser: ArgumentParser) -> None:
    """
    One of them has to be given.
    """
    aim = parser.add_mutually_exclusive_group(required=True)
    aim.add_argument("--to-earliest", action="store_true", help="to the first record there is")
    aim.add_argument("--to-latest", action="store_true", help="behind the last record")
    aim.add_argument(
        "--to-time",
        metavar="TIME",
        type=partial(option_time_ms, instead="see --to-earliest"),
        help="to the first record of that time or later, such as 2026-11-21T18:25:08Z; UTC where no zone is given; "
        "1970 at the earliest",
    )
    aim.add_argument("--to-offset", metavar="N", type=int, help="to this offset")
    aim.add_argument("--shift-by", metavar="N", type=int, help="so many on from what is committed; back if below zero")
    aim.add_argument(
        "--from-file",
        metavar="FILE",
        type=Path,
        help="to the offsets in a file: lines TOPIC,PARTITION,OFFSET, or what `describe --json` has printed",
    )


def aims(
    options: Namespace, cluster: Cluster, committed: Mapping[Partition, int], extents: Mapping[Partition, Extent]
) -> dict[Partition, Wanted]:
    """
    What is asked for, of each of these partitions.
    """
    if options.to_time is not None:
        return _at_time(options.to_time, cluster, extents)
    return {partition: _aim(options, committed.get(partition), extent) for partition, extent in extents.items()}


def _aim(options: Namespace, committed: int | None, extent: Extent) -> Wanted:
    if options.to_earliest:
        return Wanted(extent.start)
    if options.to_latest:
        return Wanted(extent.end)
    if options.to_offset is not None:
        return Wanted(options.to_offset)
    if committed is None:
        return Wanted(None, "nothing is committed to shift from")
    return Wanted(committed + options.shift_by)


def _at_time(time_ms: int, cluster: Cluster, extents: Mapping[Partition, Extent]) -> dict[Partition, Wanted]:
    places = cluster.settled(partial(found, cluster, extents, time_ms))
    wanted = {}
    for partition, extent in extents.items():
        place = places.get(partition)
        if place is None or place.offset is None:
            wanted[partition] = Wanted(extent.end, "no record is so late")
        else:
            wanted[partition] = Wanted(place.offset, "" if place.timestamp_ms is None else iso(place.timestamp_ms))
    return wanted
