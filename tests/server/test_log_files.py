"""
The log files of the process, and SIGHUP.
"""

import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TextIO, cast

import pytest
from twisted.logger import LogPublisher, capturedLogs, formatEvent, textFileLogObserver
from twisted.python.logfile import LogFile

from kgateway.observe.levels import LogLevels
from kgateway.server.process.log_files import log_files, reopen, reopen_on_hangup


@pytest.fixture
def file(tmp_path: Path) -> Iterator[LogFile]:
    file = LogFile.fromFullPath(str(tmp_path / "log"))
    yield file
    file.close()


def test_files_are_found_behind_levels(file: LogFile) -> None:
    """
    The filter of the log level stands before them.
    """
    publisher = LogPublisher(textFileLogObserver(cast(TextIO, file)), textFileLogObserver(sys.stdout))
    assert log_files(publisher) == [file]
    LogLevels(publisher).start()
    assert log_files(publisher) == [file]


def test_a_file_is_opened_again_under_its_name(file: LogFile, tmp_path: Path) -> None:
    file.write("one")
    (tmp_path / "log").rename(tmp_path / "old")
    reopen([file])
    file.write("two")
    assert ((tmp_path / "old").read_text(), (tmp_path / "log").read_text()) == ("one", "two")


def test_a_file_that_cannot_be_opened_is_written_on(file: LogFile, tmp_path: Path) -> None:
    """
    Twisted would close it first.
    """
    file.write("one")
    (tmp_path / "log").rename(tmp_path / "old")
    (tmp_path / "log").mkdir()
    with capturedLogs() as logged:
        reopen([file])
    file.write("two")
    assert (tmp_path / "old").read_text() == "onetwo"
    assert [formatEvent(event) for event in logged] == [
        f"cannot reopen {tmp_path / 'log'}; continuing with the old file: Is a directory"
    ]


class Reactor:
    """
    Records what a signal has it do.
    """

    def __init__(self) -> None:
        self.did: list[str] = []

    def callFromThread(self, call: Callable[..., Any], *_: object) -> None:
        self.did.append(call.__name__)

    def sigTerm(self, number: int, frame: object) -> None:
        self.did.append("stop")


@pytest.fixture
def _own_hangup() -> Iterator[None]:
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.mark.usefixtures("_own_hangup")
@pytest.mark.parametrize(("on_terminal", "does"), [(True, "stop"), (False, "reopen")])
def test_a_lost_terminal_stops_what_logs_to_it(monkeypatch: pytest.MonkeyPatch, on_terminal: bool, does: str) -> None:
    """
    Elsewhere a hangup does no harm.
    """
    monkeypatch.setattr(sys, "__stdout__", SimpleNamespace(isatty=lambda: on_terminal))
    reactor = Reactor()
    reopen_on_hangup(reactor)
    signal.raise_signal(signal.SIGHUP)
    assert reactor.did == [does]


@pytest.mark.usefixtures("_own_hangup")
def test_an_ignored_hangup_stays_ignored() -> None:
    """
    `nohup` ignores it for its program.
    """
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    reopen_on_hangup(Reactor())
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
