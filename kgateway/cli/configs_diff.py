"""
`kgateway configs diff`: in which configs two topics differ.
"""

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from functools import partial

from kgateway.cli.configs_resource import topic_resource
from kgateway.cli.control import as_json, table
from kgateway.client.cluster import Cluster
from kgateway.client.configs import described

_LIMITS = (80, 255, 255)
EXAMPLE = "kgateway configs diff orders billing"


def add_arguments(parser: ArgumentParser) -> None:
    """
    What can be asked for.
    """
    parser.add_argument("first", metavar="TOPIC", help="a topic")
    parser.add_argument("second", metavar="TOPIC", help="another one")


def run(options: Namespace, cluster: Cluster) -> Iterator[str]:
    """
    The configs that differ, by name.
    """
    resources = [topic_resource(name, cluster) for name in (options.first, options.second)]
    told = cluster.settled(partial(described, cluster, resources))
    first, second = ({config.name: config.value for config in told[one]} for one in resources)
    names = [name for name in sorted(first | second) if first.get(name) != second.get(name)]
    if options.json:
        yield as_json(
            {
                "topics": [options.first, options.second],
                "configs": [{"config": name, "values": [first.get(name), second.get(name)]} for name in names],
            }
        )
    elif names:
        rows = [(name, _shown(first.get(name)), _shown(second.get(name))) for name in names]
        yield from table(("CONFIG", options.first, options.second), _LIMITS, rows)
    else:
        yield f"{options.first} and {options.second} have the same configs"


def _shown(value: str | None) -> str:
    return "-" if value is None else value
