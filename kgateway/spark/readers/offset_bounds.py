"""
Where a query begins and ends, as options say: `earliest`, `latest`, offsets or timestamps of each partition, or one
timestamp for all.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kgateway.client.offsets import EARLIEST, LATEST, Extent
from kgateway.spark.errors import WrongOption
from kgateway.spark.logs.interface import Logs
from kgateway.spark.options import Options
from kgateway.topic_partition import TopicPartition

_WORDS = {"earliest": EARLIEST, "latest": LATEST}
_JSON = 'JSON like {"orders": {"0": 23, "1": -2}}'
Offsets = dict[TopicPartition, int]


@dataclass(frozen=True, slots=True)
class Bound:
    """
    The start or the end of a query: an offset, one of the special values or a timestamp, for each partition or for all.
    """

    option: str
    everywhere: int | None = None
    each: Mapping[TopicPartition, int] | None = None
    is_time: bool = False
    else_latest: bool = False  # where no record is so late; otherwise that is an error

    def resolved(self, logs: Logs, extents: Mapping[TopicPartition, Extent]) -> Offsets:
        """
        The offset of each partition.
        """
        wanted = self._wanted(extents)
        if self.is_time:
            return self._at_times(logs, wanted, extents)
        special = {LATEST: 1, EARLIEST: 0}  # indexes into an extent
        return {partition: extents[partition][special[at]] if at in special else at for partition, at in wanted.items()}

    def _wanted(self, extents: Mapping[TopicPartition, Extent]) -> Mapping[TopicPartition, int]:
        if self.each is None:
            assert self.everywhere is not None, "one of the two is there"
            return dict.fromkeys(extents, self.everywhere)
        missing, alien = extents.keys() - self.each.keys(), self.each.keys() - extents.keys()
        if alien:
            raise WrongOption(
                f"{self.option} names {_some(alien)}, which this query does not read, or which does not exist"
            )
        if missing:
            raise WrongOption(
                f"{self.option} does not name {_some(missing)}: it must name all partitions that are read; -1 means "
                "the latest offset and -2 the earliest"
            )
        return self.each

    def _at_times(
        self, logs: Logs, wanted: Mapping[TopicPartition, int], extents: Mapping[TopicPartition, Extent]
    ) -> Offsets:
        times: dict[int, list[TopicPartition]] = {}
        for partition, time in wanted.items():
            times.setdefault(time, []).append(partition)
        offsets: Offsets = {}
        for time, partitions in times.items():
            found = logs.at_time(partitions, time)
            for partition in partitions:
                offset = found[partition].offset if partition in found else None
                if offset is None and not self.else_latest:
                    raise WrongOption(
                        f"{self.option}: {partition} has no record from {time} on; with "
                        "startingOffsetsByTimestampStrategy=latest it would begin at its end"
                    )
                offsets[partition] = extents[partition].end if offset is None else offset
        return offsets


def starting(options: Options, default: str) -> Bound:
    else_latest = options.choice("startingOffsetsByTimestampStrategy", {"error": False, "latest": True}, "error")
    bound = _bound(options, "starting", default, else_latest=else_latest)
    if default == "earliest" and LATEST in _values(bound):
        raise WrongOption("startingOffsets of a batch query cannot be latest: it would read nothing")
    return bound


def ending(options: Options) -> Bound:
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
    return of_json(json.loads(text))


def of_json(topics: Mapping[str, Mapping[str, Any]]) -> Offsets:
    """
    Offsets by topic and partition, in the form of checkpoints.
    """
    return {TopicPartition(topic, int(index)): int(at) for topic, each in topics.items() for index, at in each.items()}


def to_json(offsets: Mapping[TopicPartition, int]) -> dict[str, dict[str, int]]:
    topics: dict[str, dict[str, int]] = {}
    for partition in sorted(offsets):
        topics.setdefault(partition.topic, {})[str(partition.index)] = offsets[partition]
    return topics


def _checked(text: str) -> Offsets:
    offsets = per_partition(text)
    if any(at < EARLIEST for at in offsets.values()):
        raise ValueError(text)
    return offsets


def _some(partitions: set[TopicPartition]) -> str:
    first = sorted(partitions)[:3]
    more = f" and {len(partitions) - 3} more" if len(partitions) > 3 else ""
    return ", ".join(map(str, first)) + more
