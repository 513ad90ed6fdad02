"""
Progress of long work, as one line on the terminal. The bar is tqdm's, which is imported where a bar is drawn.
"""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from tqdm import tqdm

_REDRAWN_S = 0.2  # shorter work shows no bar


class Progress:
    """
    The share that is done, the rate, and the time that is left; the line is cleared at the end. Where stderr is no
    terminal nothing is drawn. Without a unit bytes are counted.
    """

    def __init__(self, what: str = "", unit: str = "") -> None:
        self._what = what
        self._unit = unit
        self._began = time.time()
        self._bar: tqdm[Any] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.close()

    def show(self, done: int, total: int | None) -> None:
        """
        Draw the bar, but not too often. The total may grow or be unknown.
        """
        if self._bar is None:
            if not sys.stderr.isatty() or time.time() - self._began < _REDRAWN_S:
                return
            self._bar = self._drawn(total)
        self._bar.total = total
        self._bar.update(done - self._bar.n)

    def clear(self) -> None:
        """
        Make room for a line of output.
        """
        if self._bar is not None:
            self._bar.clear()

    def _drawn(self, total: int | None) -> "tqdm[Any]":
        from tqdm import tqdm

        tqdm.monitor_interval = 0  # no thread that redraws bars which are rarely updated
        bar = tqdm(
            desc=self._what or None,
            total=total,
            unit=f" {self._unit}" if self._unit else "iB",
            unit_scale=True,
            unit_divisor=1000 if self._unit else 1024,
            mininterval=_REDRAWN_S,
            miniters=1,
            leave=False,
            dynamic_ncols=True,
            file=sys.stderr,
        )
        bar.start_t = bar.last_print_t = self._began  # the rate counts from here
        return bar


@contextmanager
def watching(progress: Progress, step: Callable[[], tuple[int, int] | None], pause_s: float) -> Iterator[None]:
    """
    On a terminal, show progress from a thread, which polls how much is done.
    """
    if not sys.stderr.isatty():
        yield
        return
    over = Event()

    def watch() -> None:
        with progress:
            while not over.wait(pause_s):
                reached = step()
                if reached:
                    progress.show(*reached)

    thread = Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
