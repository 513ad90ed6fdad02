"""
`kgateway topics list` and `describe`: topics, and how much is in them.
"""

from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from kgateway.cli.common.cluster import cluster_command
from kgateway.cli.common.json_document import Json
from kgateway.cli.common.output import NAME_MAX, Column, size, table
from kgateway.cli.common.parser import Parser
from kgateway.cli.common.topic_names import all_topics, matching_topics
from kgateway.cli.common.values import add_topics
from kgateway.client.cluster import Cluster
from kgateway.client.configs import ConfigEntry, ConfigResource, describe_configs
from kgateway.client.offsets import EARLIEST, LATEST, Extent, known_offsets
from kgateway.client.topics import PartitionDescription, TopicDescription, sizes
from kgateway.plurals import counted
from kgateway.topic_partition import TopicPartition

_TOPICS = (
    Column("TOPIC", NAME_MAX),
    Column("PARTITIONS", 10, is_number=True),
    Column("REPLICAS", 10, is_number=True),
    Column("RECORDS", 20, is_number=True),
    Column("SIZE", 12, is_number=True, is_optional=True),  # not all servers tell the sizes of their logs
    Column("CLEANUP", 20),
)
_PARTITIONS = (
    Column("PARTITION", 9, is_number=True),
    Column("LEADER", 10, is_number=True),
    Column("EPOCH", 10, is_number=True),
    Column("START", 20, is_number=True),
    Column("END", 20, is_number=True),
    Column("RECORDS", 20, is_number=True),
    Column("REPLICAS", 60),
    Column("IN SYNC", 60),
)
_POLICY = "cleanup.policy"
_SET_HERE = "topic"


@dataclass(frozen=True, slots=True)
class Content:
    """
    Where the logs of a topic begin and end, and their sizes on the disks of their leaders, as far as servers tell.
    """

    extents: dict[TopicPartition, Extent]
    sizes: dict[TopicPartition, int]
    partitions: int

    @property
    def records(self) -> int | None:
        """
        The number of offsets, if it is known for all partitions.
        """
        known = len(self.extents) == self.partitions
        return sum(one.end - one.start for one in self.extents.values()) if known else None

    @property
    def bytes(self) -> int | None:
        return sum(self.sizes.values()) if len(self.sizes) == self.partitions else None


def contents(cluster: Cluster, wanted: Sequence[TopicDescription]) -> dict[str, Content]:
    leaders = {part.partition: part.leader for topic in wanted for part in topic.parts if part.leader}
    starts, ends = known_offsets(cluster, leaders, EARLIEST), known_offsets(cluster, leaders, LATEST)
    extents = {one: Extent(starts[one].offset or 0, ends[one].offset or 0) for one in starts if one in ends}
    taken = sizes(cluster, wanted)
    found = {}
    for topic in wanted:
        own = [part.partition for part in topic.parts]
        found[topic.name] = Content(
            {one: extents[one] for one in own if one in extents},
            {one: taken[one] for one in own if one in taken},
            len(own),
        )
    return found


def _add_list(parser: Parser) -> None:
    add_topics(parser, is_needed=False, help="only these topics; a pattern such as 'order*' is also allowed")
    parser.add_argument("--internal", action="store_true", help="also list the internal topics of the servers")


def _list(options: Namespace, cluster: Cluster) -> Iterator[str | Json]:
    known = all_topics(cluster)
    named = matching_topics(known, options.names) if options.names else [*known.values()]
    wanted = [one for one in named if options.internal or not one.is_internal or one.name in options.names]
    held, policies = contents(cluster, wanted), _policies(cluster, wanted)
    if options.json:
        rows = [_listed_json(topic, held[topic.name], policies.get(topic.name)) for topic in wanted]
        yield {"topics": rows}
    elif wanted:
        yield from table(_TOPICS, [_listed(topic, held[topic.name], policies.get(topic.name)) for topic in wanted])
    else:
        yield "there are no topics" + (": --internal shows the servers' internal ones" if known else "")


LIST = cluster_command(_add_list, _list, "kgateway topics list 'order*'")


def _policies(cluster: Cluster, wanted: list[TopicDescription]) -> Mapping[str, str | None]:
    resources = [ConfigResource("topic", topic.name) for topic in wanted]
    found = cluster.retry(partial(describe_configs, cluster, resources, [_POLICY]))
    return {resource.name: configs[0].value for resource, configs in found.items() if configs}


def _listed(topic: TopicDescription, held: Content, policy: str | None) -> tuple[object, ...]:
    disk = None if held.bytes is None else size(held.bytes)
    return topic.name, len(topic.parts), topic.replicas, held.records, disk, policy or None


def _listed_json(topic: TopicDescription, held: Content, policy: str | None) -> dict[str, Any]:
    return {
        "topic": topic.name,
        "partitions": len(topic.parts),
        "replicas": topic.replicas,
        "records": held.records,
        "bytes": held.bytes,
        "cleanup_policy": policy,
        "internal": topic.is_internal,
    }


def _add_describe(parser: Parser) -> None:
    add_topics(parser, help="the name of a topic, or a pattern such as 'order*'")


def _describe(options: Namespace, cluster: Cluster) -> Iterator[str | Json]:
    wanted = matching_topics(all_topics(cluster), options.names)
    held = contents(cluster, wanted)
    resources = {topic.name: ConfigResource("topic", topic.name) for topic in wanted}
    configs = cluster.retry(partial(describe_configs, cluster, [*resources.values()]))
    known = [(topic, held[topic.name], _set_here(configs[resources[topic.name]])) for topic in wanted]
    if options.json:
        yield {"topics": [_json(*one) for one in known]}
        return
    for number, one in enumerate(known):
        yield from [""] if number else []
        yield from _text(*one)


DESCRIBE = cluster_command(_add_describe, _describe, "kgateway topics describe orders")


def _set_here(configs: list[ConfigEntry]) -> list[ConfigEntry]:
    return [config for config in configs if config.source == _SET_HERE]


def _text(topic: TopicDescription, held: Content, configs: list[ConfigEntry]) -> Iterator[str]:
    facts = [counted(len(topic.parts), "partition"), counted(topic.replicas, "replica")]
    facts += [counted(held.records, "record")] if held.records is not None else []
    facts += [size(held.bytes)] if held.bytes is not None else []
    yield f"{topic.name}: {', '.join(facts)}{', internal' if topic.is_internal else ''}"
    yield from (f"  {config.name}={'(secret)' if config.is_sensitive else config.value}" for config in configs)
    yield ""
    yield from table(_PARTITIONS, [_row(part, held.extents.get(part.partition)) for part in topic.parts])


def _row(part: PartitionDescription, extent: Extent | None) -> tuple[object, ...]:
    ends = (None, None, None) if extent is None else (extent.start, extent.end, extent.end - extent.start)
    leader, epoch = (part.leader.id, part.epoch) if part.leader else (None, None)
    return part.partition.index, leader, epoch, *ends, _ids(part.replicas), _ids(part.in_sync)


def _ids(nodes: list[int]) -> str | None:
    return ",".join(map(str, nodes)) or None


def _json(topic: TopicDescription, held: Content, configs: list[ConfigEntry]) -> dict[str, Any]:
    return {
        "topic": topic.name,
        "id": topic.id,
        "internal": topic.is_internal,
        "replicas": topic.replicas,
        "records": held.records,
        "bytes": held.bytes,
        "configs": {config.name: config.value for config in configs},
        "partitions": [_partition_json(part, held) for part in topic.parts],
    }


def _partition_json(part: PartitionDescription, held: Content) -> dict[str, Any]:
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
