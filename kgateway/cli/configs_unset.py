"""
`kgateway configs unset`: give configs of a topic, a broker or a group their defaults back.
"""

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator

from kgateway.cli.configs_changing import add_dry_run, change
from kgateway.cli.configs_resource import add_resource
from kgateway.client.cluster import Cluster
from kgateway.client.configs import Change

EXAMPLE = "kgateway configs unset topic orders retention.ms"


def add_arguments(parser: ArgumentParser) -> None:
    """
    What can be asked for.
    """
    add_resource(parser)
    parser.add_argument("names", metavar="CONFIG", nargs="+", help="its name")
    add_dry_run(parser)


def run(options: Namespace, cluster: Cluster) -> Iterator[str]:
    """
    What is done.
    """
    return change(options, cluster, Change.UNSET, dict.fromkeys(options.names))
