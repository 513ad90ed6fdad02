"""
Stdin, stdout and stderr, any of which may be closed or full, and the question before what cannot be undone.
"""

import os
import sys
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from io import TextIOWrapper

from kgateway.cli.common.errors import CommandError, Unwritable
from kgateway.observe.printable import printable


def open_missing_files() -> None:
    """
    Put something in the place of closed files, which the next file or connection would take otherwise. Reading stdin
    and writing to stdout then fail; what is written to stderr is lost.
    """
    if sys.stdin is None:
        sys.stdin = os.fdopen(_nothing(os.O_WRONLY), closefd=False)
    if sys.stdout is None:
        sys.stdout = os.fdopen(_nothing(os.O_RDONLY), "w", closefd=False)
    if sys.stderr is None:
        sys.stderr = os.fdopen(_nothing(os.O_WRONLY), "w", closefd=False)


def escape_unencodable() -> None:
    r"""
    Have stdout write characters that its encoding lacks as \u2026, as stderr does.
    """
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


@contextmanager
def writing() -> Iterator[None]:
    """
    Raise Unwritable if stdout fails, except for the BrokenPipeError of a reader such as `head` that has seen enough.
    """
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise Unwritable(f"stdout cannot be written: {error.strerror or error}") from error


def give_up_stdout() -> None:
    """
    Discard the unwritten output, so that Python does not try to write it again at exit.
    """
    os.dup2(_nothing(os.O_WRONLY), sys.stdout.fileno())


def _nothing(mode: int) -> int:
    return os.open(os.devnull, mode)


def confirm(options: Namespace, what: str) -> None:
    """
    Ask at the terminal, unless --yes was given; CommandError if the answer is not yes.
    """
    if options.yes:
        return
    if not sys.stdin.isatty():
        raise CommandError(f"this would {what}: add --yes to confirm, because there is no terminal; nothing was done")
    print(printable(f"{what}? [y/N] "), end="", file=sys.stderr, flush=True)
    answer = ""
    try:
        answer = sys.stdin.readline()
    finally:
        if not answer.endswith("\n"):  # Ctrl-D or Ctrl-C
            print(file=sys.stderr)
    if answer.strip().lower() not in {"y", "yes"}:
        raise CommandError("nothing was done")
