"""
`kgateway configs set`: set configs of a topic, a broker or a group: all that are named or, where one is refused, none.
"""

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator

from kgateway.cli.configs_changing import add_values, change
from kgateway.client.cluster import Cluster
from kgateway.client.configs import Change

EXAMPLE = "kgateway configs set topic orders retention.ms=3600000 --dry-run"


def add_arguments(parser: ArgumentParser) -> None:
    """
    What can be asked for.
    """
    add_values(parser)


def run(options: Namespace, cluster: Cluster) -> Iterator[str]:
    """
    What is done.
    """
    return change(options, cluster, Change.SET, dict(options.values))
