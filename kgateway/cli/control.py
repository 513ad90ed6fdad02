"""
What the subcommands share that ask a running gateway: where it is asked, and how its answers are laid out.
"""

import json
import os
import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from typing import Any

from kgateway.control.client import ControlError, ask
from kgateway.observe.plain import printable

WIDTH = 120
_GAP = "  "


def add_socket(parser: ArgumentParser) -> None:
    """
    The option that says which gateway is meant.
    """
    parser.add_argument(
        "--control-socket",
        metavar="PATH",
        default=os.environ.get("KGATEWAY_CONTROL_SOCKET") or "kgateway.sock",
        help="the control socket of the gateway; else $KGATEWAY_CONTROL_SOCKET, else kgateway.sock in this folder",
    )


def add_json(parser: ArgumentParser) -> None:
    """
    The option for programs that read the answer.
    """
    parser.add_argument("--json", action="store_true", help="print JSON, with all that is known")


def answer(options: Namespace, command: str, arguments: dict[str, Any], **waiting: Any) -> Any:
    """
    What the gateway says. Where it says nothing, or refuses, the program ends with the reason and exit code 1.
    """
    given = {name: value for name, value in arguments.items() if value is not None}
    try:
        return ask(options.control_socket, command, given, **waiting)
    except ControlError as error:
        sys.exit(f"kgateway {command}: {error}")


def as_json(result: Any) -> str:
    """
    An answer for programs.
    """
    return json.dumps(result, indent=2)


def table(headings: Sequence[str], limits: Sequence[int], rows: Sequence[Sequence[str]]) -> list[str]:
    """
    The headings and the rows as lines; a column is as wide as its widest cell, up to its limit.
    """
    cells = [[_cell(text, limit) for text, limit in zip(row, limits, strict=True)] for row in [headings, *rows]]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return [_GAP.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells]


def clock(when_ms: int) -> str:
    """
    The local time of day.
    """
    return time.strftime("%H:%M:%S", time.localtime(when_ms / 1000))


def _cell(text: str, limit: int) -> str:
    shown = printable(text)
    return shown if len(shown) <= limit else shown[: limit - 1] + "…"
