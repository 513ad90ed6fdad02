"""
Timers at which waits end.
"""

from collections.abc import Callable

from twisted.trial.unittest import SynchronousTestCase

from kgateway.fetch.long_poll import PollTimers
from tests.serving import Serving

WAIT_S = 0.5


class Wait:
    def __init__(self, ends: PollTimers, seconds: Callable[[], float], wait_s: float = WAIT_S) -> None:
        self._seconds = seconds
        self.ended: list[float] = []
        self.end_at = ends.add(self, wait_s)

    def end_in_time(self) -> None:
        self.ended.append(self._seconds())


class Broken:
    """
    A wait whose end fails.
    """

    def end_in_time(self) -> None:
        raise ZeroDivisionError


class EndsTests(SynchronousTestCase):
    def setUp(self) -> None:
        serving = Serving()
        self.clock = serving.clock
        self.ends = PollTimers(serving.parts)

    def wait(self, wait_s: float = WAIT_S) -> Wait:
        return Wait(self.ends, self.clock.seconds, wait_s)

    def at(self, seconds: float) -> None:
        self.clock.advance(seconds - self.clock.seconds())

    def test_waits_share_timers(self) -> None:
        """
        Waits that began at different moments end by one timer, a little early and never late.
        """
        waits = []
        for began_s in (0.01, 0.03, 0.09):
            self.at(began_s)
            waits.append(self.wait())
        [timer] = self.clock.getDelayedCalls()
        self.assertAlmostEqual(0.5, timer.getTime())
        self.at(0.501)
        self.assertEqual([[0.501]] * 3, [wait.ended for wait in waits])
        self.assertEqual([], self.clock.getDelayedCalls())

    def test_a_wait_that_ends_on_the_grid_is_whole(self) -> None:
        """
        A wait that begins when another one ends is not shortened.
        """
        for _ in range(7):
            began = self.clock.seconds()
            self.wait()
            [timer] = self.clock.getDelayedCalls()
            self.assertAlmostEqual(WAIT_S, timer.getTime() - began)
            self.clock.advance(timer.getTime() - began)

    def test_short_waits_are_exact(self) -> None:
        self.at(0.05)
        self.wait(0.39)
        [timer] = self.clock.getDelayedCalls()
        self.assertAlmostEqual(0.44, timer.getTime())

    def test_removed(self) -> None:
        """
        A removed wait is not ended, and the timer is cancelled with the last one.
        """
        first, second = self.wait(), self.wait()
        self.ends.remove(first, first.end_at)
        self.clock.advance(WAIT_S)
        self.assertEqual([[], [WAIT_S]], [first.ended, second.ended])
        third = self.wait()
        self.ends.remove(third, third.end_at)
        self.assertEqual([], self.clock.getDelayedCalls())

    def test_removed_after_the_end(self) -> None:
        """
        A wait that ended is not affected by its removal.
        """
        first, second = self.wait(), self.wait(1)
        self.clock.advance(WAIT_S)
        self.ends.remove(first, first.end_at)
        self.ends.remove(first, second.end_at)
        self.clock.advance(WAIT_S)
        self.assertEqual(1, len(second.ended))

    def test_a_failing_wait(self) -> None:
        """
        The failure is logged, and the other waits end.
        """
        self.ends.add(Broken(), WAIT_S)
        wait = self.wait()
        self.clock.advance(WAIT_S)
        self.assertEqual(1, len(wait.ended))
        self.assertEqual(1, len(self.flushLoggedErrors(ZeroDivisionError)))
