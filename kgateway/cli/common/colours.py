"""
Colours on a terminal, which are few: headings, states that are not at rest, and errors. There are none in pipes and
files, on a dumb terminal, and where NO_COLOR is set.
"""

import os
from enum import StrEnum
from typing import TextIO


class Colour(StrEnum):
    BOLD = "1"
    RED = "31"
    GREEN = "32"
    YELLOW = "33"


def coloured(text: str, colour: Colour | None, file: TextIO) -> str:
    """
    The text as it is written to this file.
    """
    return f"\x1b[{colour}m{text}\x1b[0m" if colour and _has_colours(file) else text


def _has_colours(file: TextIO) -> bool:
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM", "dumb") != "dumb" and file.isatty()
