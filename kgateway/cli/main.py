"""
The `kgateway` command and its subcommands.
"""

import argparse
import os
import sys
from collections.abc import Sequence

from kgateway import __version__
from kgateway.cli import apis

_THERE = """kgateway {version}: a Kafka-protocol server in Python on Twisted.

The server itself is not here yet. What is here is its wire codec: {count} Kafka APIs, every released version of each.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """
    Run a subcommand; without one, say what is there.
    """
    options = _parser().parse_args(arguments)
    try:
        if options.command == "apis":
            print(apis.as_markdown() if options.markdown else apis.as_text())
        else:
            print(_THERE.format(version=__version__, count=len(apis.rows())))
            print(apis.as_text())
        sys.stdout.flush()
    except BrokenPipeError:  # the reader, `head` say, has seen enough; nothing may be flushed at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="kgateway", description="A Kafka-protocol server in Python on Twisted.")
    parser.add_argument("--version", action="version", version=f"kgateway {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    table = commands.add_parser("apis", help="the Kafka APIs and versions that the wire codec knows")
    table.add_argument("--markdown", action="store_true", help="print the page docs/protocol.md")
    return parser
