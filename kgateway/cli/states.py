"""
The option of lists by which only what is in some states is shown.
"""

from argparse import ArgumentParser
from collections.abc import Sequence


def add_states(parser: ArgumentParser, states: Sequence[str], which: str) -> None:
    """
    `--state`, of which it does not matter whether it is written in capitals.
    """
    known = {state.lower(): state for state in states}
    parser.add_argument(
        "--state",
        metavar="STATE",
        type=lambda text: known.get(text.lower(), text),
        choices=states,
        action="append",
        help=f"only {which} in this state; may be repeated: {', '.join(states)}",
    )
