"""
`kgateway topics purge`: delete all records that are in topics now, and keep the topics.
"""

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from functools import partial

from kgateway.cli.confirming import add_yes
from kgateway.cli.named import chosen
from kgateway.cli.topics_cut import cut
from kgateway.client.cluster import Cluster
from kgateway.client.offsets import extents
from kgateway.client.topics import topics

EXAMPLE = "kgateway topics purge orders --yes"


def add_arguments(parser: ArgumentParser) -> None:
    """
    What can be asked for.
    """
    parser.add_argument("names", metavar="NAME", nargs="+", help="its name")
    add_yes(parser)


def run(options: Namespace, cluster: Cluster) -> Iterator[str]:
    """
    Where each partition begins then.
    """
    wanted = chosen(cluster.settled(partial(topics, cluster)), options.names)
    partitions = [part.partition for topic in wanted for part in topic.parts]
    logs = cluster.settled(partial(extents, cluster, partitions))
    return cut(options, cluster, {one: extent.end for one, extent in logs.items()}, logs)
