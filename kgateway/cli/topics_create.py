"""
`kgateway topics create`: make topics. What is not said the servers choose.
"""

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from functools import partial

from kgateway.cli.pairs import pair, positive, refuse_repeated
from kgateway.cli.topics_done import done_to_each
from kgateway.client.cluster import Cluster
from kgateway.client.topics import SERVERS_CHOICE, create

EXAMPLE = "kgateway topics create orders --partitions 4 --config retention.ms=86400000"
_REPLICAS_MAX = (1 << 15) - 1


def add_arguments(parser: ArgumentParser) -> None:
    """
    What can be asked for.
    """
    parser.add_argument("names", metavar="NAME", nargs="+", help="its name")
    parser.add_argument("--partitions", metavar="N", type=positive, default=SERVERS_CHOICE, help="how many it has")
    parser.add_argument(
        "--replicas",
        metavar="N",
        type=partial(positive, most=_REPLICAS_MAX),
        default=SERVERS_CHOICE,
        help="how many servers keep each partition",
    )
    parser.add_argument(
        "--config", metavar="NAME=VALUE", type=pair, action="append", default=[], help="set this; may be repeated"
    )
    parser.set_defaults(check=lambda options: refuse_repeated(parser, options.config))


def run(options: Namespace, cluster: Cluster) -> Iterator[str]:
    """
    What has become of each.
    """

    def work(name: str) -> None:
        create(cluster, name, options.partitions, options.replicas, dict(options.config))

    return done_to_each(options, cluster, options.names, "created", work)
