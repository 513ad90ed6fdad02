"""
The three files that each program gets. Some are started without one of them, or with one that takes nothing.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager


class Unwritable(Exception):
    """
    What is said has nowhere to go; in words for the operator.
    """


def stand_in() -> None:
    """
    Put something in the place of those that are closed, which else the next file or connection would take. Who reads
    or writes there is refused; what goes to stderr is lost.
    """
    if sys.stdin is None:
        sys.stdin = os.fdopen(_nothing(os.O_WRONLY), closefd=False)
    if sys.stdout is None:
        sys.stdout = os.fdopen(_nothing(os.O_RDONLY), "w", closefd=False)
    if sys.stderr is None:
        sys.stderr = os.fdopen(_nothing(os.O_WRONLY), "w", closefd=False)


@contextmanager
def writing() -> Iterator[None]:
    """
    Around what writes to stdout. A reader that has seen enough, `head` say, stays a BrokenPipeError.
    """
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise Unwritable(f"stdout cannot be written: {error.strerror or error}") from error


def give_up_stdout() -> None:
    """
    Let what was not written be lost, so that it is not tried again at exit.
    """
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _nothing(mode: int) -> int:
    return os.open(os.devnull, mode)
