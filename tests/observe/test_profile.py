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
    What is to be found in a profile.
    """
    return sum(piece(number) for number in range(pieces))


def piece(number: int) -> int:
    """
    The part of it that is called most.
    """
    return number


class ProfileTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.clock = Clock()
        self.profiler = Profiler(self.clock)

    def begin(self, seconds: float = 10) -> Deferred[Profile]:
        """
        A profile that is being made.
        """
        profile = Deferred.fromCoroutine(self.profiler.run(seconds))
        self.addCleanup(self.end, profile)
        self.clock.advance(0)
        return profile

    def end(self, profile: Deferred[Profile]) -> None:
        """
        Leave no profiler behind.
        """
        profile.addErrback(lambda failure: failure.trap(CancelledError))
        profile.cancel()

    def functions(self, profile: Profile) -> dict[str, int]:
        """
        The calls of each function of this module, by its name.
        """
        return {row.function.split()[-1]: row.calls for row in profile.rows if "test_profile.py:" in row.function}

    def test_what_runs_meanwhile_is_counted(self) -> None:
        """
        A profile has the functions that ran between its begin and its end, and how often.
        """
        result = self.begin()
        work(50)
        self.clock.advance(10)
        work(50)
        profile = self.successResultOf(result)
        assert (self.functions(profile)["work"], self.functions(profile)["piece"]) == (1, 50)

    def test_it_ends_after_its_seconds(self) -> None:
        """
        It comes when the time is over, says how long it was, and leaves no profiler behind.
        """
        result = self.begin(2.5)
        self.clock.advance(2.4)
        self.assertNoResult(result)
        self.clock.advance(0.1)
        assert round(self.successResultOf(result).seconds, 6) == 2.5
        assert sys.getprofile() is None

    def test_it_begins_in_a_turn_of_its_own(self) -> None:
        """
        What asked for the profile is not in it.
        """
        result = Deferred.fromCoroutine(self.profiler.run(1))
        work(10)
        self.clock.advance(0)
        self.clock.advance(1)
        assert "work" not in self.functions(self.successResultOf(result))

    def test_the_most_expensive_comes_first(self) -> None:
        """
        Rows are ordered by own time, and are few.
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
        The total time has the own time of the functions called.
        """
        result = self.begin()
        work(1000)
        self.clock.advance(10)
        (row,) = [row for row in self.successResultOf(result).rows if row.function.endswith(" work")]
        assert row.total_s > row.own_s

    def test_waiting_stands_apart(self) -> None:
        """
        The time in which the reactor asks the system for news is what `waiting_s` has; other calls of it are not.
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
        While a profile is made another is refused; afterwards there is another.
        """
        first = self.begin()
        self.failureResultOf(self.begin(), ProfilerBusy)
        self.clock.advance(10)
        self.successResultOf(first)
        second = self.begin()
        self.clock.advance(10)
        self.successResultOf(second)

    def test_who_cancels_ends_it(self) -> None:
        """
        Without a taker nothing is measured any more, and the next may ask.
        """
        result = self.begin()
        result.cancel()
        self.failureResultOf(result, CancelledError)
        assert sys.getprofile() is None
        assert self.clock.getDelayedCalls() == []
        self.assertNoResult(self.begin())

    def test_another_profiler_is_left_alone(self) -> None:
        """
        Where the process is profiled as a whole, the profile is refused.
        """
        other = cProfile.Profile()
        other.enable()
        try:
            result = self.begin()
        finally:
            other.disable()
        self.failureResultOf(result, ProfilerBusy)

    def test_files_are_named_from_where_they_are_imported(self) -> None:
        """
        A function has the path of its module below the folder that Python found it in, the line and its name.
        """
        result = self.begin()
        self.clock.advance(10)
        places = [row.function for row in self.successResultOf(result).rows if "Deferred.callback" in row.function]
        assert re.search(r"^twisted/internet/defer\.py:\d+ Deferred\.callback$", places[0])
