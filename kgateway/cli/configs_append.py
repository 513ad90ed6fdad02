"""
`kgateway configs append`: add to configs that are lists.
"""

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator

from kgateway.cli.configs_changing import add_values, change
from kgateway.client.cluster import Cluster
from kgateway.client.configs import Change

EXAMPLE = "kgateway configs append topic orders cleanup.policy=compact"


def add_arguments(parser: ArgumentParser) -> None:
    """
    What can be asked for.
    """
    add_values(parser)


def run(options: Namespace, cluster: Cluster) -> Iterator[str]:
    """
    What is done.
    """
    return change(options, cluster, Change.APPEND, dict(options.values))
