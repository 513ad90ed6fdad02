"""
Failures of commands: a reason for the operator, and an exit code.
"""

import sys

from kgateway.cli.common.colours import Colour, coloured
from kgateway.observe.printable import printable

FAILED, MISTAKE, INTERRUPTED = 1, 2, 130  # exit codes; the last one as shells know it


class CommandError(Exception):
    """
    A command failed; the reason is printed on stderr.
    """

    def __init__(self, reason: str, code: int = FAILED) -> None:
        super().__init__(reason)
        self.code = code


class UsageError(CommandError):
    """
    A mistake in the command line that no single option shows.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(f"error: {reason}", MISTAKE)


def print_error(command: str, reason: str) -> None:
    print(coloured(f"{command}:", Colour.RED, sys.stderr), printable(reason), file=sys.stderr)


class Unwritable(Exception):
    """
    Stdout cannot be written.
    """
