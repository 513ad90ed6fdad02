"""
What cannot be undone is asked for twice.
"""

import sys
from argparse import ArgumentParser, Namespace

from kgateway.cli.refused import Refused
from kgateway.observe.plain import printable


def add_yes(parser: ArgumentParser) -> None:
    """
    The option for who is sure.
    """
    parser.add_argument("--yes", action="store_true", help="do not ask")


def confirm(options: Namespace, what: str) -> None:
    """
    Ask at the terminal, unless that was answered in advance; Refused where the answer is not yes.
    """
    if options.yes:
        return
    if not sys.stdin.isatty():
        raise Refused(f"this would {what}: say --yes, for there is no terminal to ask at; nothing is done")
    print(printable(f"{what}? [y/N] "), end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in {"y", "yes"}:
        raise Refused("nothing is done")
