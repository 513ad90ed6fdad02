"""
Ctrl-C, SIGTERM and the SIGHUP of a closed terminal during long work.
"""

import atexit
import os
import select
import signal
import threading
import time
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Self, TypeVar

T = TypeVar("T")
_ONE_INTERRUPT_S = 3.0
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_TICK_S = 0.5  # a signal may come just before a wait begins
_SIGNALLED = 128  # plus the number of the signal is the exit code, as in shells


class _BrokenOff(BaseException):
    """
    A signal has come.
    """


class Interrupts:
    """
    The first signal sets `came`, so that the work comes to an end. Further signals within a few seconds count as the
    same one: `timeout` signals a process and its group, and people press keys twice. A later one ends the process at
    once, for instance if a server does not answer.
    """

    def __init__(self) -> None:
        self.came = False
        self.exit_code = 0
        self._first_at = 0.0
        self._breaks_off = False
        self._before: dict[signal.Signals, signal.Handlers | object] = {}
        self._hears = threading.current_thread() is threading.main_thread()

    def __enter__(self) -> Self:
        self._bell, self._ring = os.pipe()
        if self._hears:
            heard = [number for number in _SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]  # as `nohup` does
            self._before = {number: signal.signal(number, self._interrupted) for number in heard}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if not self.came:  # else the program is about to end, and the same signal may come again
            for number, before in self._before.items():
                signal.signal(number, before)  # type: ignore[arg-type]  # it came from there
        os.close(self._bell)
        os.close(self._ring)

    def ready(self, file: int, patience_s: float | None = None) -> bool:
        """
        Whether input arrives within this time, without an interrupt.
        """
        readable, _, _ = select.select([file, self._bell], [], [], patience_s)
        return file in readable and not self.came

    def writable(self, file: int) -> bool:
        """
        Wait until a write to this file need not wait; False after an interrupt.
        """
        while not self.came:
            _, writable, _ = select.select([self._bell], [file], [], _TICK_S)
            if writable and not self.came:
                return True
        return False

    def rest(self, seconds: float) -> None:
        """
        Sleep, but end at an interrupt.
        """
        select.select([self._bell], [], [], seconds)

    def unless_interrupted(self, work: Callable[[], T]) -> T | None:
        """
        The result of work that may wait for long; None after an interrupt, which stops it wherever it is.
        """
        try:
            try:
                self._breaks_off = True
                return None if self.came else work()
            finally:
                self._breaks_off = False
        except _BrokenOff:
            return None

    def _interrupted(self, number: int, frame: FrameType | None) -> None:
        if self.came:
            if time.monotonic() - self._first_at > _ONE_INTERRUPT_S:
                signal.signal(number, signal.SIG_DFL)
                signal.raise_signal(number)
            return
        self._first_at, self.exit_code = time.monotonic(), _SIGNALLED + number
        self.came = True
        atexit.register(_ignore_signals)
        os.write(self._ring, b"!")
        if self._breaks_off:
            raise _BrokenOff


def _ignore_signals() -> None:
    """
    Keep the exit code: Python gives signals their default actions back while it ends.
    """
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_IGN)
