"""
A profile of the reactor's thread: Python's own profiler, switched on for some seconds in a running gateway.

It slows the thread down while it runs, and sees no other threads. A function's own time excludes the functions it
calls. The time in which the reactor had nothing to do is given apart, as `waiting_s`.
"""

import cProfile
import re
import sys
from dataclasses import dataclass
from types import CodeType

from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import deferLater

_ROWS = 40
_WAITS = re.compile(r"<method '(poll|control)' of 'select\.|<built-in method select\.select>")


@dataclass(frozen=True, slots=True)
class ProfileRow:
    own_s: float
    total_s: float  # with what it called
    calls: int
    function: str


@dataclass(frozen=True, slots=True)
class Profile:
    """
    The functions with the most time of their own, the most expensive first.
    """

    seconds: float
    waiting_s: float
    rows: list[ProfileRow]


class ProfilerBusy(Exception):
    """
    A thread can have only one profiler at a time.
    """


class Profiler:
    def __init__(self, clock: IReactorTime) -> None:
        self._clock = clock
        self._running = False

    async def run(self, seconds: float) -> Profile:
        """
        Profile the thread for this long; cancelling ends it.
        """
        if self._running:
            raise ProfilerBusy("a profile is already being made")
        self._running = True
        try:
            return await self._measure(seconds)
        finally:
            self._running = False

    async def _measure(self, seconds: float) -> Profile:
        profiler = cProfile.Profile()
        await deferLater(self._clock, 0)  # begin outside the call that asked
        began = self._clock.seconds()
        _enable(profiler)
        try:
            await deferLater(self._clock, seconds)
        finally:
            profiler.disable()
        return _profile(self._clock.seconds() - began, profiler)


def _enable(profiler: cProfile.Profile) -> None:
    busy = ProfilerBusy("another profiler is active in this process")
    if sys.getprofile() is not None:
        raise busy
    try:
        profiler.enable()
    except ValueError as error:  # how Python 3.12 and later say it
        raise busy from error


def _profile(seconds: float, profiler: cProfile.Profile) -> Profile:
    entries = profiler.getstats()
    rows = [ProfileRow(entry.inlinetime, entry.totaltime, entry.callcount, _place(entry.code)) for entry in entries]
    rows.sort(key=lambda row: row.own_s, reverse=True)
    waiting_s = sum(row.own_s for row in rows if _WAITS.match(row.function))
    return Profile(seconds, waiting_s, rows[:_ROWS])


def _place(code: CodeType | str) -> str:
    if isinstance(code, str):
        return code  # a builtin has no file
    folders = [folder for folder in sys.path if folder and code.co_filename.startswith(f"{folder}/")]
    file = code.co_filename.removeprefix(max(folders, key=len, default="")).lstrip("/")
    return f"{file}:{code.co_firstlineno} {code.co_qualname}"
