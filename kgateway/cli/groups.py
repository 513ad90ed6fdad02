"""
`kgateway groups`: consumer groups of any server that speaks Kafka's protocol.
"""

from argparse import ArgumentParser

from kgateway.cli import groups_delete, groups_describe, groups_list, groups_reset
from kgateway.cli.asking import add_kinds
from kgateway.cli.asking import run_kind as run

_KINDS = {"list": groups_list, "describe": groups_describe, "reset-offsets": groups_reset, "delete": groups_delete}

__all__ = ["add_arguments", "run"]


def add_arguments(parser: ArgumentParser) -> None:
    """
    What can be asked for.
    """
    add_kinds(parser, _KINDS)
