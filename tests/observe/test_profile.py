"""
Where the reactor's thread spends its time.
"""

import cProfile
import os
import re
import select
import sys

from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from kgateway.observe.profile import Profile, Profiler, ProfilerBusy


def work(pieces: int) -> int:
    """
    The function that a profile should show.
    """
    return sum(piece(number) for number in range(pieces))


def piece(number: int) -> int:
    """
    The part of the work that is called most.
    """
    return number


class ProfileTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.clock = Clock()
        self.profiler = Profiler(self.clock)

    def begin(self, seconds: float = 10) -> Deferred[Profile]:
        """
        A profile that is running.
        """
        profile = Deferred.fromCoroutine(self.profiler.run(seconds))
        self.addCleanup(self.end, profile)
        self.clock.advance(0)
        return profile

    def end(self, profile: Deferred[Profile]) -> None:
        profile.addErrback(lambda failure: failure.trap(CancelledError))
        profile.cancel()

    def functions(self, profile: Profile) -> dict[str, int]:
        """
        The calls of each function of this module, by name.
        """
        return {row.function.split()[-1]: row.calls for row in profile.rows if "test_profile.py:" in row.function}

    def test_calls_are_counted(self) -> None:
        """
        A profile has the functions that ran between its begin and its end, with their number of calls.
        """
        result = self.begin()
        work(50)
        self.clock.advance(10)
        work(50)
        profile = self.successResultOf(result)
        assert (self.functions(profile)["work"], self.functions(profile)["piece"]) == (1, 50)

    def test_it_ends_after_its_seconds(self) -> None:
        """
        The result has its duration, and no profiler is left behind.
        """
        result = self.begin(2.5)
        self.clock.advance(2.4)
        self.assertNoResult(result)
        self.clock.advance(0.1)
        assert round(self.successResultOf(result).seconds, 6) == 2.5
        assert sys.getprofile() is None

    def test_it_begins_in_a_turn_of_its_own(self) -> None:
        """
        The function that requested the profile is not in it.
        """
        result = Deferred.fromCoroutine(self.profiler.run(1))
        work(10)
        self.clock.advance(0)
        self.clock.advance(1)
        assert "work" not in self.functions(self.successResultOf(result))

    def test_the_most_expensive_is_first(self) -> None:
        """
        Rows are ordered by own time, and limited.
        """
        result = self.begin()
        namespace: dict[str, object] = {}
        exec("".join(f"def f{number}(): pass\nf{number}()\n" for number in range(100)), namespace)
        work(1000)
        self.clock.advance(10)
        rows = self.successResultOf(result).rows
        own = [row.own_s for row in rows]
        assert sorted(own, reverse=True) == own
        assert len(rows) == 40

    def test_a_function_includes_what_it_calls(self) -> None:
        """
        The total time includes the functions called.
        """
        result = self.begin()
        work(1000)
        self.clock.advance(10)
        (row,) = [row for row in self.successResultOf(result).rows if row.function.endswith(" work")]
        assert row.total_s > row.own_s

    def test_waiting_is_separate(self) -> None:
        """
        `waiting_s` is the time in which the reactor waits for events; other calls of that function do not count.
        """
        result = self.begin()
        reading, writing = os.pipe()
        with open(reading), open(writing, "w"):
            poller = select.poll()
            poller.register(reading)
            poller.poll(0)
            self.clock.advance(10)
        profile = self.successResultOf(result)
        (polling,) = [row for row in profile.rows if "'poll'" in row.function]
        assert polling.own_s == profile.waiting_s

    def test_one_at_a_time(self) -> None:
        """
        During a profile another is refused; afterwards it is possible.
        """
        first = self.begin()
        self.failureResultOf(self.begin(), ProfilerBusy)
        self.clock.advance(10)
        self.successResultOf(first)
        second = self.begin()
        self.clock.advance(10)
        self.successResultOf(second)

    def test_cancelling_ends_it(self) -> None:
        """
        A cancelled profile measures nothing more, and another one may begin.
        """
        result = self.begin()
        result.cancel()
        self.failureResultOf(result, CancelledError)
        assert sys.getprofile() is None
        assert self.clock.getDelayedCalls() == []
        self.assertNoResult(self.begin())

    def test_another_profiler_is_left_alone(self) -> None:
        """
        If the whole process is profiled, the profile is refused.
        """
        other = cProfile.Profile()
        other.enable()
        try:
            result = self.begin()
        finally:
            other.disable()
        self.failureResultOf(result, ProfilerBusy)

    def test_files_have_import_paths(self) -> None:
        """
        A function has the path of its module below the folder on sys.path, the line and its name.
        """
        result = self.begin()
        self.clock.advance(10)
        places = [row.function for row in self.successResultOf(result).rows if "Deferred.callback" in row.function]
        assert re.search(r"^twisted/internet/defer\.py:\d+ Deferred\.callback$", places[0])
