"""
`kgateway loglevel`: how much a running gateway's log says.
"""

from argparse import ArgumentParser, Namespace

from kgateway.cli.common.json_document import Json
from kgateway.cli.common.parser import Command, add_example
from kgateway.cli.gateway.control_socket import add_socket, answer


def _add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "level", metavar="LEVEL", nargs="?", help="debug, info, warn, error or critical; without it the level is shown"
    )
    add_socket(parser)
    add_example(parser, "kgateway loglevel debug")


def _run(options: Namespace) -> list[str | Json]:
    result = answer(options, "loglevel", {"level": options.level})
    if options.json:
        return [result]
    return [result["level"] if options.level is None else f"{result['level']} (it was {result['before']})"]


LOGLEVEL = Command(_add_arguments, _run)
