"""
The generations of partitions that the folder of a topic has. SeaweedMQ knows today's only, in `topic.conf`; one that
was made and replaced while no gateway looked is to be found by its folders alone.

Those tell the second in which it was made, and a range once something was published to it. So the partitions that a
generation had are told by the ranges there are: the smallest number of them with which SeaweedMQ makes such ranges.
"""

from collections.abc import Collection, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from kgateway.broker.seaweed.filer import Filer
from kgateway.broker.seaweed.protos.messaging_pb2 import ConfigureTopicResponse
from kgateway.broker.seaweedmq.kept_topic import KeptTopic
from kgateway.broker.seaweedmq.layout import (
    RING_SIZE,
    SECOND_NS,
    Range,
    generation_name,
    generation_second,
    range_named,
    ring_range,
    ring_ranges,
)
from kgateway.broker.seaweedmq.topic_conf import generation_of, ranges_of


class Made(NamedTuple):
    """
    A generation as SeaweedMQ made it.
    """

    unix_time_ns: int
    parts: Sequence[Range]  # by Kafka's index


class Missed(NamedTuple):
    """
    What nobody has kept of a topic.
    """

    generations: Sequence[Made]  # oldest first
    left_out: Sequence[str]  # folders that have no place in the topic


def todays(conf: ConfigureTopicResponse) -> Made:
    """
    The generation that SeaweedMQ knows.
    """
    return Made(generation_of(conf), ranges_of(conf))


async def missed(filer: Filer, folder: str, kept: KeptTopic, today: Made) -> Missed:
    """
    What was made between the last generation that is kept and today's.
    """
    known = {(generation_name(today.unix_time_ns), part) for part in today.parts}
    known |= {(generation_name(each.unix_time_ns), part) for each in kept.generations for part, *_ in each.stretches}
    last = generation_name(kept.generations[-1].unix_time_ns) if kept.generations else ""
    found, left_out = list[Made](), list[str]()
    for name in [entry.name for entry in await filer.all_entries(folder) if entry.is_directory]:
        second = generation_second(name)
        if second is None or name > generation_name(today.unix_time_ns):
            continue
        ranges = [range_named(entry.name) for entry in await filer.all_entries(f"{folder}/{name}")]
        unknown = {part for part in ranges if part and (name, part) not in known}
        groups, rest = grouped(unknown) if name >= last else ([], unknown)
        found += [Made(second * SECOND_NS, parts) for parts in groups]
        left_out += [f"{name}/{part}" for part in sorted(rest)]
    return Missed(found, left_out)


def grouped(parts: Collection[Range]) -> tuple[list[Sequence[Range]], Collection[Range]]:
    """
    The generations, of fewer partitions first, that these ranges are of; and the ranges that are of none.
    """
    if _are_a_ring(sorted(parts)):
        return [sorted(parts)], ()
    counts, rest = list[int](), set(parts)
    while rest:
        fitting = {count: set(_fitting(rest, count)) for count in range(1, RING_SIZE + 1)}
        best = max(fitting, key=lambda count: len(fitting[count]))
        if not fitting[best]:
            break
        counts.append(best)
        rest -= fitting[best]
    return [ring_ranges(count) for count in sorted(counts)], rest


def _are_a_ring(parts: Sequence[Range]) -> bool:
    ends = [Range(0, 0), *parts, Range(RING_SIZE, RING_SIZE)]
    return bool(parts) and all(one.stop == other.start for one, other in pairwise(ends))


def _fitting(parts: Collection[Range], count: int) -> Iterator[Range]:
    for part in parts:
        index = min(part.start // (RING_SIZE // count), count - 1)
        if ring_range(index, count) == part:
            yield part
