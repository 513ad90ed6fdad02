"""
`kgateway topics`: topics of any server that speaks Kafka's protocol.
"""

from argparse import ArgumentParser

from kgateway.cli import (
    topics_alter,
    topics_create,
    topics_delete,
    topics_delete_records,
    topics_describe,
    topics_list,
    topics_purge,
)
from kgateway.cli.asking import add_kinds
from kgateway.cli.asking import run_kind as run

_KINDS = {
    "list": topics_list,
    "describe": topics_describe,
    "create": topics_create,
    "alter": topics_alter,
    "delete": topics_delete,
    "delete-records": topics_delete_records,
    "purge": topics_purge,
}

__all__ = ["add_arguments", "run"]


def add_arguments(parser: ArgumentParser) -> None:
    """
    What can be asked for.
    """
    add_kinds(parser, _KINDS)
