"""
The log files of the process. On SIGHUP they are opened again, for programs such as logrotate, which rename them.

twistd writes them, and rotates them on SIGUSR1. Without this, SIGHUP would end the process at once.
"""

import os
import signal
import sys
from collections.abc import Iterable
from typing import Any

from twisted.logger import FilteringLogObserver, Logger, LogPublisher, globalLogPublisher
from twisted.python.logfile import BaseLogFile

from kgateway.log_messages import CANNOT_REOPEN_LOG

_log = Logger()


def log_files(publisher: LogPublisher = globalLogPublisher) -> list[BaseLogFile]:
    """
    The files that log events are written to. Twisted has no public names on the way to them.
    """
    observers = (
        observer._observer if isinstance(observer, FilteringLogObserver) else observer
        for observer in publisher._observers
    )
    files = (getattr(observer, "_outFile", None) for observer in observers)
    return [file for file in files if isinstance(file, BaseLogFile)]


def reopen(files: Iterable[BaseLogFile]) -> None:
    """
    Open the files again under their names. One that cannot be opened is written on as it is.
    """
    for file in files:
        try:
            os.close(os.open(file.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666))
        except OSError as error:
            _log.error(CANNOT_REOPEN_LOG, path=file.path, reason=error.strerror)
        else:
            file.reopen()
            _log.info("{path} was reopened", path=file.path)


def reopen_on_hangup(reactor: Any) -> None:
    """
    Let SIGHUP open the log again. A process that logs to a terminal stops in good order instead, because then the
    terminal is gone. Without a log file, a process that was started by `nohup` goes on to ignore the signal.
    """
    on_terminal = bool(sys.__stdout__ and sys.__stdout__.isatty())

    def hang_up(number: int, frame: Any) -> None:
        files = log_files()
        if files or not on_terminal:
            reactor.callFromThread(reopen, files)
        else:
            reactor.sigTerm(number, frame)

    if signal.getsignal(signal.SIGHUP) is signal.SIG_DFL or log_files():
        signal.signal(signal.SIGHUP, hang_up)
