"""
How far a job is, shown to who waits at a terminal.
"""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread
from types import TracebackType
from typing import Self

_BAR = 30


class Progress:
    """
    One line of a terminal, that goes when it is over.
    """

    def __init__(self, what: str, unit: str) -> None:
        self._what = what
        self._unit = unit
        self._terminal = sys.stderr
        self._began = time.monotonic()
        self._of: int | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._of and self._terminal.isatty():
            self._terminal.write("\r\x1b[K")
            self._terminal.flush()

    def left(self, left: int) -> None:
        """
        Draw that so many are left; the first time, that is how many there are.
        """
        self._of = left if self._of is None else self._of
        if self._of:
            self.done(self._of - left, self._of)

    def done(self, done: int, of: int) -> None:
        """
        Draw that so many of all are done.
        """
        self._of = of
        if not self._terminal.isatty():
            return
        share = min(done / (of or 1), 1)
        full = round(share * _BAR)
        rate = done / max(time.monotonic() - self._began, 0.001)
        text = f"{self._what} [{'#' * full}{'.' * (_BAR - full)}] {share:.0%}, {done:,} of {of:,} {self._unit}"
        self._terminal.write(f"\r{text}, {rate:,.0f}/s \x1b[K")
        self._terminal.flush()


@contextmanager
def watching(watch: Callable[[Event], None]) -> Iterator[None]:
    """
    At a terminal, have a thread tell how far a job is, until the event is set, as it is when this is left.
    """
    if not sys.stderr.isatty():
        yield
        return
    over = Event()
    thread = Thread(target=watch, args=[over], daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
