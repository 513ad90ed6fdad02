"""
`kgateway loglevel`: how much a running gateway's log says.
"""

from argparse import ArgumentParser, Namespace

from kgateway.cli.control import add_socket, answer


def add_arguments(parser: ArgumentParser) -> None:
    """
    What can be asked for.
    """
    parser.add_argument(
        "level", metavar="LEVEL", nargs="?", help="debug, info, warn, error or critical; else it is shown"
    )
    add_socket(parser)


def run(options: Namespace) -> str:
    """
    The level, and what it was before it was set.
    """
    result = answer(options, "loglevel", {"level": options.level})
    return result["level"] if options.level is None else f"{result['level']} (it was {result['before']})"
