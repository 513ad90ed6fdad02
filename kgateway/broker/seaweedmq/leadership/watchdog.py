"""
The watchdog of a leader: a process that was stopped, or whose event loop hangs, is killed.

A stopped leader keeps its connections, so its clients wait for answers, and a standby waits for the lock. Once the
process is killed, its clients are disconnected, and a standby on the same machine can prove that it has ended. As it is
killed before its lock expires, it does not wake up beside another leader either.

The event loop sets the timer again and again while the gateway serves as the leader. The timer is off before that,
while much is read from the cluster.
"""

from collections.abc import Callable
from typing import Protocol

from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import LoopingCall
from twisted.logger import Logger

from kgateway.broker.seaweedmq.leadership.kill_timer import KillTimer, NoKillTimer
from kgateway.log_messages import NO_WATCHDOG

_SETS = 8  # per timeout, so that a process is killed after at least seven eighths of it


class ITimer(Protocol):
    def set(self, seconds: float) -> None: ...


class Watchdog:
    _log = Logger()

    def __init__(self, milliseconds: int, clock: IReactorTime, timer: Callable[[], ITimer] = KillTimer) -> None:
        self._seconds = milliseconds / 1000
        self._new_timer = timer
        self._timer: ITimer | None = None
        self._setting = LoopingCall(self._set)
        self._setting.clock = clock

    def prepare(self) -> None:
        """
        Warn if the watchdog would have no effect. Called by the process that is to be watched: a forked one has no
        timers of its parent.
        """
        if self._seconds:
            try:
                self._timer = self._new_timer()
            except NoKillTimer as why:
                self._log.warn(NO_WATCHDOG, why=why)

    def start(self) -> None:
        """
        From now on the event loop has to keep turning.
        """
        if self._timer and not self._setting.running:
            self._setting.start(self._seconds / _SETS)

    def stop(self) -> None:
        if self._timer and self._setting.running:
            self._setting.stop()
            self._timer.set(0)

    def _set(self) -> None:
        assert self._timer
        self._timer.set(self._seconds)
