"""
`kgateway profile`: where a running gateway spends its time.
"""

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from typing import Any, TextIO

from kgateway.cli.control import add_json, add_socket, answer, as_json, table

_HEADINGS = ("   OWN s", " TOTAL s", "    CALLS", "FUNCTION")
_LIMITS = (8, 8, 9, 89)
_PATIENCE_S = 30  # beyond the time of the profile: the gateway may be busy


def add_arguments(parser: ArgumentParser) -> None:
    """
    What can be asked for.
    """
    parser.add_argument("--seconds", metavar="N", type=float, default=10.0, help="for how long, 10 if not given")
    add_json(parser)
    add_socket(parser)


def run(options: Namespace) -> str:
    """
    The answer, the most expensive function first.
    """
    seconds = options.seconds
    show = countdown(seconds, sys.stderr)
    try:
        result = answer(options, "profile", {"seconds": seconds}, patience_s=seconds + _PATIENCE_S, waiting=show)
    finally:
        show(seconds)
    return as_json(result) if options.json else _text(result)


def countdown(seconds: float, terminal: TextIO) -> Callable[[float], None]:
    """
    Shows on a terminal how long it takes yet, and nothing more when the time is over.
    """

    def show(elapsed_s: float) -> None:
        left_s = seconds - elapsed_s
        terminal.write(f"\rprofiling, {left_s:.0f} s to go \x1b[K" if left_s > 0 else "\r\x1b[K")
        terminal.flush()

    return show if terminal.isatty() else lambda elapsed_s: None


def _text(result: dict[str, Any]) -> str:
    share = result["waiting_s"] / result["seconds"] if result["seconds"] else 0
    summary = f"{result['seconds']:.1f} s, of which the reactor waited {share:.0%} for something to do"
    return "\n".join([summary, "", *table(_HEADINGS, _LIMITS, [_row(row) for row in result["rows"]])])


def _row(row: dict[str, Any]) -> tuple[str, ...]:
    return f"{row['own_s']:8.3f}", f"{row['total_s']:8.3f}", f"{row['calls']:9}", row["function"]
