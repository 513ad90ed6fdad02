"""
The watchdog: when it sets its timer, by a clock that the test sets, and what the timer does to real processes.
"""

import ctypes
import os
import signal
import subprocess
import sys
from math import inf
from time import monotonic

import pytest
from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import Clock
from twisted.logger import capturedLogs, formatEvent

from kgateway.broker.seaweedmq.leadership.kill_timer import KillTimer, NoKillTimer
from kgateway.broker.seaweedmq.leadership.watchdog import Watchdog
from tests.broker.behaviour import result
from tests.broker.seaweed.real_reactor import reactor, until
from tests.broker.seaweedmq.gateways import Start

_WATCHED = """
import signal, sys
from os import getpid, kill
from time import sleep
from twisted.internet import reactor
from kgateway.broker.seaweedmq.leadership.watchdog import Watchdog

watchdog = Watchdog(1_000, reactor)
watchdog.prepare()
watchdog.start()
def freeze():
    print("frozen", flush=True)
    {freeze}
def on_time():
    if {stops}:
        watchdog.stop()
    reactor.callLater(0, freeze)
reactor.callLater(1.5, on_time)
reactor.run(installSignalHandlers=False)
"""
_STOP = "kill(getpid(), signal.SIGSTOP)"


class Timer:
    """
    A timer that remembers until when it was set.
    """

    def __init__(self, clock: IReactorTime) -> None:
        self._clock = clock
        self.until = inf

    def set(self, seconds: float) -> None:
        self.until = self._clock.seconds() + seconds if seconds else inf


class World:
    def __init__(self) -> None:
        self.clock = Clock()
        self.timer = Timer(self.clock)
        self.watchdog = Watchdog(4_000, self.clock, lambda: self.timer)
        self.watchdog.prepare()


@pytest.fixture
def world() -> World:
    return World()


def test_the_timer_is_set_while_the_gateway_leads(world: World) -> None:
    """
    The time is never shorter than seven eighths of the timeout.
    """
    assert world.timer.until == inf
    world.watchdog.start()
    assert world.timer.until == 4
    for _ in range(100):
        world.clock.advance(0.1)
        assert world.timer.until - world.clock.seconds() > 3.49
    world.watchdog.stop()
    assert world.timer.until == inf
    world.clock.advance(10)
    assert world.timer.until == inf


def test_it_is_not_set_again_while_the_loop_hangs(world: World) -> None:
    world.watchdog.start()
    world.clock.rightNow += 3.9  # nothing is called meanwhile
    assert world.timer.until == 4


def test_it_is_set_again_in_each_term(world: World) -> None:
    """
    The role may end before the watchdog has started.
    """
    world.watchdog.stop()
    for _ in range(2):
        world.watchdog.start()
        world.watchdog.start()
        assert world.timer.until == world.clock.seconds() + 4
        world.watchdog.stop()
        world.clock.advance(7)
        assert world.timer.until == inf


def test_a_gateway_is_watched_from_when_it_serves_until_it_stops(start: Start) -> None:
    broker, timer = start(), Timer(reactor)
    broker._election._watchdog = Watchdog(60_000, reactor, lambda: timer)
    result(broker.start())
    assert timer.until < inf
    result(broker.stop())
    assert timer.until == inf


def test_a_gateway_that_has_lost_its_lease_is_not_watched(start: Start) -> None:
    """
    It leads again afterwards, and is watched again.
    """
    broker, timer = start(), Timer(reactor)
    broker._election._watchdog = Watchdog(60_000, reactor, lambda: timer)
    result(broker.start())
    try:
        broker._election._lose()
        assert timer.until == inf
        until(lambda: timer.until < inf)
    finally:
        result(broker.stop())


def test_zero_means_that_there_is_no_timer() -> None:
    def refused() -> Timer:
        raise AssertionError("a timer was created")

    watchdog = Watchdog(0, Clock(), refused)
    watchdog.prepare()
    watchdog.start()
    watchdog.stop()


def test_process_1_is_told_that_it_cannot_be_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    It leads without a watchdog.
    """
    monkeypatch.setattr(os, "getpid", lambda: 1)
    watchdog = Watchdog(4_000, Clock())
    with capturedLogs() as events:
        watchdog.prepare()
        watchdog.start()
        watchdog.stop()
    [line] = map(formatEvent, events)
    assert line == (
        "the watchdog of a frozen leader has no effect: this gateway is process 1 of its container, which the kernel "
        "protects from SIGKILL"
    )


@pytest.mark.skipif(sys.platform != "linux", reason="the timer needs Linux")
@pytest.mark.parametrize("freeze", [_STOP, "while True: pass", "sleep(60)"])
def test_a_process_that_stops_or_hangs_is_killed(freeze: str) -> None:
    """
    Although it runs for longer than the timeout while its event loop turns.
    """
    began = monotonic()
    with _watched(freeze) as process:
        assert process.stdout
        assert process.stdout.readline() == b"frozen\n"
        frozen = monotonic()
        assert process.wait(30) == -signal.SIGKILL
    assert monotonic() - frozen < 10
    assert frozen - began > 1.5


@pytest.mark.skipif(sys.platform != "linux", reason="the timer needs Linux")
def test_a_process_whose_watchdog_has_stopped_may_be_stopped() -> None:
    with _watched(_STOP, stops=True) as process:
        assert process.stdout
        assert process.stdout.readline() == b"frozen\n"
        os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(2)  # twice the timeout
        process.kill()


def _watched(freeze: str, *, stops: bool = False) -> "subprocess.Popen[bytes]":
    return subprocess.Popen([sys.executable, "-c", _WATCHED.format(freeze=freeze, stops=stops)], stdout=subprocess.PIPE)


@pytest.mark.skipif(sys.platform != "linux", reason="the timer needs Linux")
def test_a_system_that_has_no_timers_left_says_so() -> None:
    program = "import resource\nresource.setrlimit(resource.RLIMIT_SIGPENDING, (0, 0))\n"
    program += "from kgateway.broker.seaweedmq.leadership.kill_timer import KillTimer\nKillTimer()"
    found = subprocess.run([sys.executable, "-c", program], stderr=subprocess.PIPE, text=True, check=False)
    assert "NoKillTimer: timer_create failed: Resource temporarily unavailable" in found.stderr


def test_a_system_without_such_timers_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda *_, **__: object())
    with pytest.raises(NoKillTimer, match="it needs Linux"):
        KillTimer()
