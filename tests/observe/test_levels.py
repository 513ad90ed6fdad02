"""
The levels of the log.
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
    The only observer of a publisher, as twistd sets it up.
    """

    def __init__(self) -> None:
        self.written: list[str] = []
        self.publisher = LogPublisher(self)
        self.logger = Logger("kgateway.test", observer=self.publisher)

    def __call__(self, event: LogEvent) -> None:
        self.written.append(event["log_format"])

    def say(self) -> list[str]:
        """
        Log a line of each level; returns those that are written.
        """
        self.written.clear()
        for level in LEVELS:
            getattr(self.logger, level)(level)
        return self.written


def test_lines_below_the_level_are_not_written() -> None:
    """
    Each level shows itself and those above it.
    """
    log = Log()
    levels = LogLevels(log.publisher)
    levels.start()
    for position, level in enumerate(LEVELS):
        levels.set(level)
        assert levels.level == level
        assert log.say() == list(LEVELS[position:])


def test_the_initial_level() -> None:
    """
    It applies from the start; the default is info.
    """
    log = Log()
    LogLevels(log.publisher, "error").start()
    assert log.say() == ["error", "critical"]
    assert LogLevels(log.publisher).level == "info"


def test_a_level_set_before_the_start() -> None:
    """
    Nothing is hidden before the start; then the level applies.
    """
    log = Log()
    levels = LogLevels(log.publisher)
    levels.set("warn")
    assert log.say() == list(LEVELS)
    levels.start()
    assert log.say() == ["warn", "error", "critical"]


def test_after_the_stop_the_log_is_restored() -> None:
    """
    All lines are written, once, by the original observer.
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


def test_two_gateways_in_a_process() -> None:
    """
    A line is hidden if either hides it, and each restores what it changed.
    """
    log = Log()
    first, second = LogLevels(log.publisher, "warn"), LogLevels(log.publisher, "debug")
    first.start()
    second.start()
    assert log.say() == ["warn", "error", "critical"]
    second.stop()
    first.stop()
    assert log.say() == list(LEVELS)


def test_old_style_lines_have_levels() -> None:
    """
    Lines that Twisted's own modules log in its old style count as info.
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
    In a real process debug lines are written at debug, and info lines are hidden at warn.
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


def test_connections_of_the_http_client_are_debug_lines() -> None:
    """
    Twisted's client logs each connection that it opens as if operators needed it.
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
