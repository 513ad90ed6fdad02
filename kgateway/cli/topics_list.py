"""
`kgateway topics list`: all topics, with how much is in them. Records are counted by offsets, so those that compaction
has removed count too.
"""

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from kgateway.cli.bar import size
from kgateway.cli.control import as_json, table
from kgateway.cli.layout import number_or_dash, right_aligned
from kgateway.cli.named import chosen
from kgateway.cli.topics_content import Content, content
from kgateway.client.cluster import Cluster
from kgateway.client.configs import Resource, described
from kgateway.client.topics import Topic, topics

_HEADINGS = ("TOPIC", "PARTITIONS", "REPLICAS", "RECORDS", "SIZE", "CLEANUP")
_LIMITS = (255, 10, 10, 20, 12, 20)
_SIZE = _HEADINGS.index("SIZE")
_POLICY = "cleanup.policy"
EXAMPLE = "kgateway topics list 'order*'"


@dataclass(frozen=True, slots=True)
class _Listed:
    """
    A topic among others.
    """

    topic: Topic
    content: Content
    policy: str | None


def add_arguments(parser: ArgumentParser) -> None:
    """
    What can be asked for.
    """
    parser.add_argument(
        "names", metavar="NAME", nargs="*", help="only these; a pattern such as 'order*' may stand here"
    )
    parser.add_argument("--internal", action="store_true", help="those too that servers keep for themselves")


def run(options: Namespace, cluster: Cluster) -> Iterator[str]:
    """
    The topics that are meant.
    """
    known = cluster.settled(partial(topics, cluster))
    wanted = chosen(known, options.names) if options.names else [*known.values()]
    kept = [one for one in wanted if options.internal or not one.is_internal or one.name in options.names]
    held, policies = content(cluster, kept), _policies(cluster, kept)
    listed = [_Listed(topic, held[topic.name], policies.get(topic.name)) for topic in kept]
    if options.json:
        yield as_json({"topics": [_told(one) for one in listed]})
    elif listed:
        yield from _table(listed)
    else:
        yield "there are no topics" + (": --internal shows those of the servers themselves" if known else "")


def _policies(cluster: Cluster, wanted: list[Topic]) -> Mapping[str, str | None]:
    resources = [Resource("topic", topic.name) for topic in wanted]
    told = cluster.settled(partial(described, cluster, resources, [_POLICY]))
    return {resource.name: configs[0].value for resource, configs in told.items() if configs}


def _table(listed: list[_Listed]) -> list[str]:
    numbers = [
        (
            str(len(one.topic.parts)),
            str(one.topic.replicas),
            number_or_dash(one.content.records),
            "-" if one.content.bytes is None else size(one.content.bytes),
        )
        for one in listed
    ]
    headings, *aligned = right_aligned(_HEADINGS[1:5], numbers)
    rows = [(one.topic.name, *cells, one.policy or "-") for one, cells in zip(listed, aligned, strict=True)]
    # Without the column that says nothing: not all servers tell of their disks.
    sized = any(one.content.bytes is not None for one in listed)
    kept = [column for column in range(len(_HEADINGS)) if sized or column != _SIZE]
    every = [(_HEADINGS[0], *headings, _HEADINGS[5]), *rows]
    first, *rest = [[row[column] for column in kept] for row in every]
    return table(first, [_LIMITS[column] for column in kept], rest)


def _told(one: _Listed) -> dict[str, Any]:
    return {
        "topic": one.topic.name,
        "partitions": len(one.topic.parts),
        "replicas": one.topic.replicas,
        "records": one.content.records,
        "bytes": one.content.bytes,
        "cleanup_policy": one.policy,
        "internal": one.topic.is_internal,
    }
