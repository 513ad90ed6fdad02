"""
`kgateway profile`: where a running gateway spends its time.
"""

import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable, Iterator
from typing import TextIO

from kgateway.cli.common.json_document import Json
from kgateway.cli.common.output import Column, table, width
from kgateway.cli.common.parser import Command, add_example
from kgateway.cli.gateway.control_socket import add_socket, answer

_COLUMNS = (Column("   OWN s", 8), Column(" TOTAL s", 8), Column("    CALLS", 9), Column("FUNCTION", 255))
_PATIENCE_S = 30  # beyond the time of the profile: the gateway may be busy


def _add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--seconds", metavar="N", type=_seconds, default=10.0, help="how many seconds to measure (default 10)"
    )
    add_socket(parser)
    add_example(parser, "kgateway profile --seconds 0.5")


def _run(options: Namespace) -> Iterator[str | Json]:
    seconds = options.seconds
    show = countdown(seconds, sys.stderr)
    try:
        result = answer(options, "profile", {"seconds": seconds}, patience_s=seconds + _PATIENCE_S, waiting=show)
    finally:
        show(seconds)
    if options.json:
        yield result
        return
    share = result["waiting_s"] / result["seconds"] if result["seconds"] else 0
    yield f"{result['seconds']:.1f} s, of which the reactor was idle for {share:.0%}"
    yield ""
    yield from table(_COLUMNS, [_row(**row) for row in result["rows"]], width())


PROFILE = Command(_add_arguments, _run)


def _seconds(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ArgumentTypeError(f"must be a number of seconds, not {text!r}") from None


def countdown(seconds: float, terminal: TextIO) -> Callable[[float], None]:
    """
    Shows on a terminal how many seconds are left; it clears the line when the time is over.
    """

    def show(elapsed_s: float) -> None:
        left_s = seconds - elapsed_s
        terminal.write(f"\rprofiling, {left_s:.0f} s to go \x1b[K" if left_s > 0 else "\r\x1b[K")
        terminal.flush()

    return show if terminal.isatty() else lambda elapsed_s: None


def _row(own_s: float, total_s: float, calls: int, function: str) -> tuple[str, ...]:
    return f"{own_s:8.3f}", f"{total_s:8.3f}", f"{calls:9}", function
