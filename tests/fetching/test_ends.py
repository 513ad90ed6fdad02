"""
Ends of waits.
"""

from collections.abc import Callable

from twisted.trial.unittest import SynchronousTestCase

from kgateway.fetching.ends import Ends
from tests.serving import Serving

WAIT_S = 0.5


class Wait:
    """
    Keeps when it ended.
    """

    def __init__(self, ends: Ends, seconds: Callable[[], float], wait_s: float = WAIT_S) -> None:
        self._seconds = seconds
        self.ended: list[float] = []
        self.end_at = ends.add(self, wait_s)

    def time_is_up(self) -> None:
        self.ended.append(self._seconds())


class Broken:
    """
    Does not know how to end.
    """

    def time_is_up(self) -> None:
        raise ZeroDivisionError


class EndsTests(SynchronousTestCase):
    def setUp(self) -> None:
        serving = Serving()
        self.clock = serving.clock
        self.ends = Ends(serving.parts)

    def wait(self, wait_s: float = WAIT_S) -> Wait:
        return Wait(self.ends, self.clock.seconds, wait_s)

    def at(self, seconds: float) -> None:
        self.clock.advance(seconds - self.clock.seconds())

    def test_ends_fall_together(self) -> None:
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
        Those who begin where others ended wait as long as they asked for.
        """
        for _ in range(7):
            began = self.clock.seconds()
            self.wait()
            [timer] = self.clock.getDelayedCalls()
            self.assertAlmostEqual(WAIT_S, timer.getTime() - began)
            self.clock.advance(timer.getTime() - began)

    def test_short_waits_are_as_asked(self) -> None:
        """
        Little time is not cut.
        """
        self.at(0.05)
        self.wait(0.39)
        [timer] = self.clock.getDelayedCalls()
        self.assertAlmostEqual(0.44, timer.getTime())

    def test_removed(self) -> None:
        """
        Who does not wait any more is not told, and with the last of them the timer goes.
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
        Nothing happens to those who end then.
        """
        first, second = self.wait(), self.wait(1)
        self.clock.advance(WAIT_S)
        self.ends.remove(first, first.end_at)
        self.ends.remove(first, second.end_at)
        self.clock.advance(WAIT_S)
        self.assertEqual(1, len(second.ended))

    def test_one_that_fails(self) -> None:
        """
        It is logged, and the others end.
        """
        self.ends.add(Broken(), WAIT_S)
        wait = self.wait()
        self.clock.advance(WAIT_S)
        self.assertEqual(1, len(wait.ended))
        self.assertEqual(1, len(self.flushLoggedErrors(ZeroDivisionError)))
