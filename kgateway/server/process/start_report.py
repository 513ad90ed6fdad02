"""
Where the outcome of a start is reported: the terminal, or whatever stdout and stderr are.

A daemon has neither any more when the gateway starts. So it keeps copies of both until it can say that it is ready, or
why it is not, and only then does the command end from which it was started, with an exit code to match. twistd would
end it earlier, and print an error as the representation of 100 bytes.
"""

import atexit
import os
import sys
from collections.abc import MutableMapping
from contextlib import suppress
from pathlib import Path
from typing import Any, TextIO

_ENDED = "the daemon exited before it was ready; see its log"


class StartReport:
    def __init__(self, twistd: MutableMapping[str, Any]) -> None:
        """
        `twistd` are the options of the program. The process has not become a daemon yet.
        """
        self._twistd = twistd
        self._pipe: int | None = None
        self._is_over = False
        self._output: TextIO | None = sys.__stdout__
        self._errors: TextIO | None = sys.__stderr__
        self.is_daemon = not twistd.get("nodaemon", True)
        self.has_log = self.is_daemon or bool(twistd.get("syslog")) or twistd.get("logfile") not in (None, "", "-")
        if self.is_daemon:
            self._output, self._errors = _copy(1), _copy(2)
            # twistd's parent process would print its error there.
            sys.__stderr__ = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")  # type: ignore[misc]
            atexit.register(self._ended)

    def begin(self) -> None:
        """
        Take the pipe on which twistd's parent process waits, before twistd writes to it that all is well.
        """
        self._pipe = self._twistd.pop("statusPipe", self._pipe)

    def ready(self, line: str) -> None:
        _print(line, self._output)
        self._end(b"0")

    def failed(self, line: str) -> None:
        _print(line, self._errors)
        self._remove_pid_file()
        self._end(b"1")

    def _ended(self) -> None:
        """
        Report what nobody has foreseen: the parent of twistd would wait for ever.
        """
        if not self._is_over:
            self.begin()
            self.failed(_ENDED)

    def _end(self, status: bytes) -> None:
        self._is_over = True
        if not self.is_daemon:
            return
        for copy in (self._output, self._errors):
            with suppress(OSError):
                if copy:
                    copy.close()
        self._output = self._errors = None
        if self._pipe is not None:
            with suppress(OSError):  # nobody waits any more
                os.write(self._pipe, status)
            os.close(self._pipe)
            self._pipe = None

    def _remove_pid_file(self) -> None:
        """
        twistd leaves the file of a process that ends while it starts.
        """
        path = self._twistd.get("pidfile")
        if path:
            with suppress(OSError, ValueError):
                if int(Path(path).read_text()) == os.getpid():
                    os.unlink(path)


def _copy(descriptor: int) -> TextIO | None:
    try:
        return os.fdopen(os.dup(descriptor), "w")
    except OSError:  # it was closed
        return None


def _print(line: str, file: TextIO | None) -> None:
    if file:
        with suppress(OSError):  # a start does not fail because nobody reads of it
            print(line, file=file, flush=True)
