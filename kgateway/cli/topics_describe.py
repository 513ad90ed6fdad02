"""
`kgateway topics describe`: a topic, its partitions, and the configs that were set.
"""

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from functools import partial
from typing import Any

from kgateway.cli.bar import size
from kgateway.cli.control import as_json, table
from kgateway.cli.layout import counted, number_or_dash, right_aligned
from kgateway.cli.named import chosen
from kgateway.cli.topics_content import Content, content
from kgateway.client.cluster import Cluster
from kgateway.client.configs import Config, Resource, described
from kgateway.client.topics import Part, Topic, topics

_HEADINGS = ("PARTITION", "LEADER", "EPOCH", "START", "END", "RECORDS", "REPLICAS", "IN SYNC")
_LIMITS = (9, 10, 10, 20, 20, 20, 60, 60)
_SET_HERE = "topic"
EXAMPLE = "kgateway topics describe orders"


def add_arguments(parser: ArgumentParser) -> None:
    """
    What can be asked for.
    """
    parser.add_argument("names", metavar="NAME", nargs="+", help="its name, or a pattern such as 'order*'")


def run(options: Namespace, cluster: Cluster) -> Iterator[str]:
    """
    One topic after the other.
    """
    wanted = chosen(cluster.settled(partial(topics, cluster)), options.names)
    held = content(cluster, wanted)
    resources = {topic.name: Resource("topic", topic.name) for topic in wanted}
    configs = cluster.settled(partial(described, cluster, [*resources.values()]))
    known = [(topic, held[topic.name], _set_here(configs[resources[topic.name]])) for topic in wanted]
    if options.json:
        yield as_json({"topics": [_told(*one) for one in known]})
        return
    for number, one in enumerate(known):
        yield from [""] if number else []
        yield from _text(*one)


def _set_here(configs: list[Config]) -> list[Config]:
    return [config for config in configs if config.source == _SET_HERE]


def _text(topic: Topic, held: Content, configs: list[Config]) -> Iterator[str]:
    facts = [counted(len(topic.parts), "partition"), counted(topic.replicas, "replica")]
    facts += [counted(held.records, "record")] if held.records is not None else []
    facts += [size(held.bytes)] if held.bytes is not None else []
    yield f"{topic.name}: {', '.join(facts)}{', internal' if topic.is_internal else ''}"
    yield from (f"  {config.name}={'(secret)' if config.is_sensitive else config.value}" for config in configs)
    yield ""
    headings, *rows = right_aligned(_HEADINGS[:6], [_numbers(part, held) for part in topic.parts])
    cells = [(*row, _ids(part.replicas), _ids(part.in_sync)) for row, part in zip(rows, topic.parts, strict=True)]
    yield from table((*headings, *_HEADINGS[6:]), _LIMITS, cells)


def _numbers(part: Part, held: Content) -> tuple[str, ...]:
    extent = held.extents.get(part.partition)
    ends = (None, None, None) if extent is None else (extent.start, extent.end, extent.end - extent.start)
    leader, epoch = (part.leader.id, part.epoch) if part.leader else (None, None)
    return tuple(map(number_or_dash, (part.partition.index, leader, epoch, *ends)))


def _ids(nodes: list[int]) -> str:
    return ",".join(map(str, nodes)) or "-"


def _told(topic: Topic, held: Content, configs: list[Config]) -> dict[str, Any]:
    return {
        "topic": topic.name,
        "id": topic.id,
        "internal": topic.is_internal,
        "replicas": topic.replicas,
        "records": held.records,
        "bytes": held.bytes,
        "configs": {config.name: config.value for config in configs},
        "partitions": [_told_part(part, held) for part in topic.parts],
    }


def _told_part(part: Part, held: Content) -> dict[str, Any]:
    extent = held.extents.get(part.partition)
    return {
        "partition": part.partition.index,
        "leader": part.leader.id if part.leader else None,
        "epoch": part.epoch,
        "start": extent and extent.start,
        "end": extent and extent.end,
        "bytes": held.sizes.get(part.partition),
        "replicas": part.replicas,
        "in_sync": part.in_sync,
    }
