"""
`kgateway configs`: configs of topics, brokers and groups of any server that speaks Kafka's protocol.
"""

from argparse import ArgumentParser

from kgateway.cli import (
    configs_append,
    configs_describe,
    configs_diff,
    configs_set,
    configs_subtract,
    configs_unset,
)
from kgateway.cli.asking import add_kinds
from kgateway.cli.asking import run_kind as run

_KINDS = {
    "describe": configs_describe,
    "set": configs_set,
    "append": configs_append,
    "subtract": configs_subtract,
    "unset": configs_unset,
    "diff": configs_diff,
}

__all__ = ["add_arguments", "run"]


def add_arguments(parser: ArgumentParser) -> None:
    """
    What can be asked for.
    """
    add_kinds(parser, _KINDS)
