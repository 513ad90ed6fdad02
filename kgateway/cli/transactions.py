"""
`kgateway transactions`: transactions of any server that speaks Kafka's protocol.
"""

from argparse import ArgumentParser

from kgateway.cli import transactions_abort, transactions_describe, transactions_list
from kgateway.cli.asking import add_kinds
from kgateway.cli.asking import run_kind as run

_KINDS = {"list": transactions_list, "describe": transactions_describe, "abort": transactions_abort}

__all__ = ["add_arguments", "run"]


def add_arguments(parser: ArgumentParser) -> None:
    """
    What can be asked for.
    """
    add_kinds(parser, _KINDS)
