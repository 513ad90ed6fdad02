"""
The program: `python -m kgateway`, and the command `kgateway`.
"""

# PYTHON_ARGCOMPLETE_OK: argcomplete looks for this word where it completes all programs.

import os
import signal
import sys
from typing import Any, NoReturn

_INTERRUPTED = 130  # as shells know it


def run() -> int:
    """
    Ctrl-C ends the program silently, also while it imports its modules.
    """
    hears = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if hears:
        signal.signal(signal.SIGINT, _end)
    from kgateway.cli.main import main

    if hears:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    return main()


def _end(number: int, frame: Any) -> NoReturn:
    os._exit(_INTERRUPTED)


if __name__ == "__main__":
    sys.exit(run())
