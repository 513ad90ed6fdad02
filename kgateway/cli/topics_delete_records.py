"""
`kgateway topics delete-records`: delete the oldest records of topics, up to an offset or a time.
"""

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from functools import partial

from kgateway.cli.confirming import add_yes
from kgateway.cli.named import chosen
from kgateway.cli.places import place, resolved
from kgateway.cli.refused import Refused
from kgateway.cli.topic_partitions import topic_partitions
from kgateway.cli.topics_cut import cut
from kgateway.client.cluster import Cluster
from kgateway.client.offsets import Extent, Partition, extents
from kgateway.client.topics import Topic, topics

EXAMPLE = "kgateway topics delete-records orders:0 --before 2026-11-21T18:25:08Z --yes"


def add_arguments(parser: ArgumentParser) -> None:
    """
    What can be asked for.
    """
    parser.add_argument(
        "topics", metavar="NAME[:N,N]", type=topic_partitions, nargs="+", help="a topic, or some of its partitions"
    )
    parser.add_argument(
        "--before",
        metavar="PLACE",
        type=place,
        required=True,
        help="the first record to keep: an offset, -N for the last N, the first one of a time or later, or end",
    )
    add_yes(parser)


def run(options: Namespace, cluster: Cluster) -> Iterator[str]:
    """
    Where each partition begins then.
    """
    known = cluster.settled(partial(topics, cluster))
    wanted = _wanted(options, {one.name: one for one in chosen(known, [name for name, _ in options.topics])})
    logs = cluster.settled(partial(extents, cluster, wanted))
    aims = resolved(cluster, options.before, logs)
    ends = {one: logs[one].end if offset is None else offset for one, offset in aims.items()}
    _refuse_beyond(ends, logs)
    return cut(options, cluster, ends, logs)


def _wanted(options: Namespace, known: dict[str, Topic]) -> list[Partition]:
    wanted: dict[Partition, None] = {}
    for name, indexes in options.topics:
        there = [part.partition for part in known[name].parts]
        named = [Partition(name, index) for index in indexes] or there
        missing = [str(one) for one in named if one not in there]
        if missing:
            raise Refused(f"there is no partition {', '.join(missing)}: {name} has {len(there)}; nothing is done")
        wanted |= dict.fromkeys(named)
    return [*wanted]


def _refuse_beyond(ends: dict[Partition, int], logs: dict[Partition, Extent]) -> None:
    beyond = [f"{one} ends at {logs[one].end}" for one, offset in ends.items() if offset > logs[one].end]
    if beyond:
        raise Refused(f"{', '.join(beyond)}: nothing beyond the end can be deleted; nothing is done")
