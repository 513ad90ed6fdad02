"""
Ctrl-C during a long work: the first one asks it to come to an end, the second ends the program.
"""

import os
import select
import signal
import threading
from types import FrameType, TracebackType
from typing import Self


class Interrupts:
    """
    Whether somebody wants an end.
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
        Whether there is something to read within this time; not when an end is wanted.
        """
        readable, _, _ = select.select([file, self._bell], [], [], patience_s)
        return file in readable and not self.came

    def rest(self, seconds: float) -> None:
        """
        Wait so long, or until an end is wanted.
        """
        select.select([self._bell], [], [], seconds)

    def _interrupted(self, number: int, frame: FrameType | None) -> None:
        if self.came:
            raise KeyboardInterrupt
        self.came = True
        os.write(self._ring, b"!")
