"""
Where a query begins and ends, as options say it: `earliest`, `latest`, offsets or timestamps of each partition, or one
timestamp for all.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kgateway.client.offsets import EARLIEST, LATEST, Extent, Partition
from kgateway.spark.failures import WrongOption
from kgateway.spark.logs import Logs
from kgateway.spark.options import Options

_WORDS = {"earliest": EARLIEST, "latest": LATEST}
_JSON = 'JSON like {"orders": {"0": 23, "1": -2}}'
Offsets = dict[Partition, int]


@dataclass(frozen=True, slots=True)
class Bound:
    """
    An end of a query: for each partition an offset or one of the special values; or timestamps.
    """

    option: str
    everywhere: int | None = None
    each: Mapping[Partition, int] | None = None
    is_time: bool = False
    else_latest: bool = False  # where no record is of that time or later; else that is an error

    def resolved(self, logs: Logs, extents: Mapping[Partition, Extent]) -> Offsets:
        """
        The offset in each partition.
        """
        wanted = self._wanted(extents)
        if self.is_time:
            return self._at_times(logs, wanted, extents)
        special = {LATEST: 1, EARLIEST: 0}  # places in an extent
        return {one: extents[one][special[at]] if at in special else at for one, at in wanted.items()}

    def _wanted(self, extents: Mapping[Partition, Extent]) -> Mapping[Partition, int]:
        if self.each is None:
            assert self.everywhere is not None, "one of the two is there"
            return dict.fromkeys(extents, self.everywhere)
        missing, alien = extents.keys() - self.each.keys(), self.each.keys() - extents.keys()
        if alien:
            raise WrongOption(f"{self.option} names {_some(alien)}, which this query does not read, or is not there")
        if missing:
            raise WrongOption(
                f"{self.option} says nothing of {_some(missing)}: it has to name all partitions that are read; "
                "-1 stands for the latest offset and -2 for the earliest"
            )
        return self.each

    def _at_times(self, logs: Logs, wanted: Mapping[Partition, int], extents: Mapping[Partition, Extent]) -> Offsets:
        times: dict[int, list[Partition]] = {}
        for partition, time in wanted.items():
            times.setdefault(time, []).append(partition)
        offsets: Offsets = {}
        for time, partitions in times.items():
            found = logs.at_time(partitions, time)
            for partition in partitions:
                offset = found[partition].offset if partition in found else None
                if offset is None and not self.else_latest:
                    raise WrongOption(
                        f"{self.option}: {partition} has no record from {time} on; "
                        "startingOffsetsByTimestampStrategy=latest has it begin at its end then"
                    )
                offsets[partition] = extents[partition].end if offset is None else offset
        return offsets


def starting(options: Options, default: str) -> Bound:
    """
    Where the query begins.
    """
    else_latest = options.choice("startingOffsetsByTimestampStrategy", {"error": False, "latest": True}, "error")
    bound = _bound(options, "starting", default, else_latest=else_latest)
    if default == "earliest" and LATEST in _values(bound):
        raise WrongOption("startingOffsets of a batch query cannot be latest: it would read nothing")
    return bound


def ending(options: Options) -> Bound:
    """
    Where a batch query ends.
    """
    bound = _bound(options, "ending", "latest", else_latest=True)
    if EARLIEST in _values(bound):
        raise WrongOption("endingOffsets cannot be earliest: the query would read nothing")
    return bound


def _values(bound: Bound) -> set[int | None]:
    return set() if bound.is_time else {bound.everywhere, *(bound.each or {}).values()}


def _bound(options: Options, which: str, default: str, *, else_latest: bool) -> Bound:
    one, each, offsets = f"{which}Timestamp", f"{which}OffsetsByTimestamp", f"{which}Offsets"
    if options.has(one):
        return Bound(one, everywhere=options.number(one, 0, least=0), is_time=True, else_latest=else_latest)
    if options.has(each):
        times = options.parsed(each, per_partition, _JSON)
        return Bound(each, each=times, is_time=True, else_latest=else_latest)
    text = options.text(offsets, default)
    if text.lower() in _WORDS:
        return Bound(offsets, everywhere=_WORDS[text.lower()])
    return Bound(offsets, each=options.parsed(offsets, _checked, f"earliest, latest, or {_JSON}"))


def per_partition(text: str) -> Offsets:
    """
    A number for each partition.
    """
    return of_json(json.loads(text))


def of_json(topics: Mapping[str, Mapping[str, Any]]) -> Offsets:
    """
    The same, as it stands in checkpoints: by topic and by partition.
    """
    return {Partition(topic, int(index)): int(at) for topic, each in topics.items() for index, at in each.items()}


def to_json(offsets: Mapping[Partition, int]) -> dict[str, dict[str, int]]:
    """
    As it stands in checkpoints.
    """
    topics: dict[str, dict[str, int]] = {}
    for partition in sorted(offsets):
        topics.setdefault(partition.topic, {})[str(partition.index)] = offsets[partition]
    return topics


def _checked(text: str) -> Offsets:
    offsets = per_partition(text)
    if any(at < EARLIEST for at in offsets.values()):
        raise ValueError(text)
    return offsets


def _some(partitions: set[Partition]) -> str:
    first = sorted(partitions)[:3]
    more = f" and {len(partitions) - 3} more" if len(partitions) > 3 else ""
    return ", ".join(map(str, first)) + more
