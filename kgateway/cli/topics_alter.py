"""
`kgateway topics alter`: give topics more partitions. Records stay where they are, but the same key may belong to
another partition from then on.
"""

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from functools import partial

from kgateway.cli.layout import counted
from kgateway.cli.named import chosen
from kgateway.cli.pairs import positive
from kgateway.cli.topics_done import done_to_each
from kgateway.client.cluster import Cluster
from kgateway.client.topics import topics, widen

EXAMPLE = "kgateway topics alter orders --partitions 6"


def add_arguments(parser: ArgumentParser) -> None:
    """
    What can be asked for.
    """
    parser.add_argument("names", metavar="NAME", nargs="+", help="its name")
    parser.add_argument(
        "--partitions", metavar="N", type=positive, required=True, help="how many it is to have, more than now"
    )


def run(options: Namespace, cluster: Cluster) -> Iterator[str]:
    """
    What has become of each.
    """
    names = [topic.name for topic in chosen(cluster.settled(partial(topics, cluster)), options.names)]
    done = f"altered to {counted(options.partitions, 'partition')}"
    return done_to_each(options, cluster, names, done, lambda name: widen(cluster, name, options.partitions))
