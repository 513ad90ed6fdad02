"""
Stdin, stdout and stderr, any of which may be closed or full, the question before what cannot be undone, and Ctrl-C.
"""

import os
import select
import signal
import sys
import threading
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from types import FrameType, TracebackType
from typing import Self

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
        raise CommandError(f"this would {what}: say --yes, for there is no terminal to ask at; nothing is done")
    print(printable(f"{what}? [y/N] "), end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in {"y", "yes"}:
        raise CommandError("nothing is done")


class Interrupts:
    """
    Ctrl-C during long work: the first one sets `came`, so that the work comes to an end, the second ends the program.
    """

    def __init__(self) -> None:
        self.came = False
        self._before: signal.Handlers | object = None
        self._hears = threading.current_thread() is threading.main_thread()

    def __enter__(self) -> Self:
        self._bell, self._ring = os.pipe()
        if self._hears:
            self._before = signal.signal(signal.SIGINT, self._interrupted)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._hears:
            signal.signal(signal.SIGINT, self._before)  # type: ignore[arg-type]  # it came from there
        os.close(self._bell)
        os.close(self._ring)

    def ready(self, file: int, patience_s: float | None = None) -> bool:
        """
        Whether input arrives within this time, without an interrupt.
        """
        readable, _, _ = select.select([file, self._bell], [], [], patience_s)
        return file in readable and not self.came

    def rest(self, seconds: float) -> None:
        """
        Sleep, but end at an interrupt.
        """
        select.select([self._bell], [], [], seconds)

    def _interrupted(self, number: int, frame: FrameType | None) -> None:
        if self.came:
            raise KeyboardInterrupt
        self.came = True
        os.write(self._ring, b"!")
