"""
How much the log says.
"""

import subprocess
import sys
from pathlib import Path

from twisted.logger import ILogObserver, LogEvent, Logger, LogPublisher
from twisted.python import log as legacy
from zope.interface import implementer

from kgateway.observe.levels import LEVELS, LogLevels

TWISTD = "from twisted.scripts.twistd import run; run()"
APPLICATION = """
from twisted.application.service import Application, Service
from twisted.internet import reactor
from twisted.logger import Logger, globalLogPublisher
from kgateway.observe.levels import LogLevels

class Speaker(Service):
    def startService(self):
        log, levels = Logger(), LogLevels(globalLogPublisher, "info")
        levels.start()
        for level in ("info", "debug", "warn"):
            levels.set(level)
            log.debug("{at}: debug line", at=level)
            log.info("{at}: info line", at=level)
            log.warn("{at}: warn line", at=level)
        levels.stop()
        reactor.callWhenRunning(reactor.stop)

application = Application("speaker")
Speaker().setServiceParent(application)
"""


@implementer(ILogObserver)
class Log:
    """
    The only observer of a publisher, as twistd leaves it.
    """

    def __init__(self) -> None:
        self.written: list[str] = []
        self.publisher = LogPublisher(self)
        self.logger = Logger("kgateway.test", observer=self.publisher)

    def __call__(self, event: LogEvent) -> None:
        self.written.append(event["log_format"])

    def say(self) -> list[str]:
        """
        A line of each level, and which of them are written.
        """
        self.written.clear()
        for level in LEVELS:
            getattr(self.logger, level)(level)
        return self.written


def test_lines_below_the_level_are_not_written() -> None:
    """
    Each level lets itself and those above it through.
    """
    log = Log()
    levels = LogLevels(log.publisher)
    levels.start()
    for position, level in enumerate(LEVELS):
        levels.set(level)
        assert levels.level == level
        assert log.say() == list(LEVELS[position:])


def test_the_first_level_is_given() -> None:
    """
    It holds from the start, and is info where none is given.
    """
    log = Log()
    LogLevels(log.publisher, "error").start()
    assert log.say() == ["error", "critical"]
    assert LogLevels(log.publisher).level == "info"


def test_a_level_set_before_the_start_holds() -> None:
    """
    Nothing is hidden before the start, and what was set is afterwards.
    """
    log = Log()
    levels = LogLevels(log.publisher)
    levels.set("warn")
    assert log.say() == list(LEVELS)
    levels.start()
    assert log.say() == ["warn", "error", "critical"]


def test_after_the_stop_the_log_is_as_it_was() -> None:
    """
    All lines are written, once, by the very observer that was there.
    """
    log = Log()
    levels = LogLevels(log.publisher, "error")
    levels.start()
    levels.stop()
    levels.stop()
    assert log.publisher._observers == [log]
    assert log.say() == list(LEVELS)


def test_a_gateway_may_start_again() -> None:
    """
    Each line is written once, at the level set last.
    """
    log = Log()
    levels = LogLevels(log.publisher, "error")
    levels.start()
    levels.stop()
    levels.start()
    assert log.say() == ["error", "critical"]


def test_two_gateways_of_a_process_hide_what_either_hides() -> None:
    """
    And each takes away what it brought.
    """
    log = Log()
    first, second = LogLevels(log.publisher, "warn"), LogLevels(log.publisher, "debug")
    first.start()
    second.start()
    assert log.say() == ["warn", "error", "critical"]
    second.stop()
    first.stop()
    assert log.say() == list(LEVELS)


def test_old_lines_have_levels_too() -> None:
    """
    What Twisted's own modules say in its old way counts as info.
    """
    log = Log()
    observed = legacy.LogPublisher(publishPublisher=log.publisher)
    levels = LogLevels(log.publisher)
    levels.start()
    observed.msg("at info")
    levels.set("warn")
    observed.msg("at warn")
    assert len(log.written) == 1


def test_twistd_writes_what_the_level_permits(tmp_path: Path) -> None:
    """
    In a real process debug lines are shown at debug, and info lines hidden at warn.
    """
    (tmp_path / "speaker.tac").write_text(APPLICATION)
    command = [sys.executable, "-c", TWISTD, "-n", "--pidfile=", "-y", "speaker.tac"]
    shown = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True).stdout
    lines = [line.partition("] ")[2] for line in shown.splitlines() if line.endswith(" line")]
    assert lines == [
        *("info: info line", "info: warn line"),
        *("debug: debug line", "debug: info line", "debug: warn line"),
        "warn: warn line",
    ]
    assert "Server Shut Down." in shown


def test_connections_of_the_http_client_are_told_in_detail_only() -> None:
    """
    Twisted's client tells of each connection it opens, as of something that an operator wants to know.
    """
    log = Log()
    levels = LogLevels(log.publisher, "info")
    levels.start()
    log.logger = Logger("twisted.web.client._HTTP11ClientFactory", observer=log.publisher)
    assert log.say() == ["warn", "error", "critical"]
    levels.set("error")
    assert log.say() == ["error", "critical"]
    levels.set("debug")
    assert log.say() == list(LEVELS)
