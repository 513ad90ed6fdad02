"""
A call that fails for a passing reason is repeated.
"""

from collections.abc import Callable, Sequence

from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from kgateway.broker.seaweed.calls.retries import Retries, delay_s
from kgateway.broker.seaweed.grpc.status import RpcError, Status

_GONE = RpcError(Status.UNAVAILABLE, "gone")


class RetryingTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.clock = Clock()
        self.retries = Retries(self.clock, share=lambda: 1.0)
        self.times: list[tuple[float, float]] = []

    def attempt(self, outcomes: Sequence[object]) -> Callable[[float], Deferred[object]]:
        left = list(outcomes)

        async def attempted(seconds: float) -> object:
            self.times.append((self.clock.seconds(), seconds))
            outcome = left.pop(0)
            if isinstance(outcome, Exception):
                raise outcome
            return outcome

        return lambda seconds: Deferred.fromCoroutine(attempted(seconds))

    def test_the_first_outcome_counts(self) -> None:
        """
        A call that succeeds is made once.
        """
        self.assertEqual(5, self.successResultOf(self.retries.run(self.attempt([5]), 10)))
        self.assertEqual([(0, 10)], self.times)

    def test_delays_grow(self) -> None:
        """
        Each delay is twice the one before, and every attempt gets the time that is left.
        """
        running = self.retries.run(self.attempt([_GONE, _GONE, _GONE, 5]), 10)
        self.clock.pump([0.05, 0.1, 0.2])
        self.assertEqual(5, self.successResultOf(running))
        for (at, left), expected in zip(self.times, [0, 0.05, 0.15, 0.35], strict=True):
            self.assertAlmostEqual(expected, at)
            self.assertAlmostEqual(10 - expected, left)

    def test_other_failures_are_final(self) -> None:
        """
        A refused call is not repeated.
        """
        running = self.retries.run(self.attempt([RpcError(Status.INVALID_ARGUMENT, "no")]), 10)
        self.assertEqual(Status.INVALID_ARGUMENT, self.failureResultOf(running, RpcError).value.status)

    def test_what_may_be_repeated_can_be_said(self) -> None:
        """
        The caller decides that.
        """
        running = self.retries.run(self.attempt([KeyError(), 5]), 10, lambda error: isinstance(error, KeyError))
        self.clock.advance(0.05)
        self.assertEqual(5, self.successResultOf(running))

    def test_the_last_failure_is_told_in_time(self) -> None:
        """
        No attempt waits that could only begin after the deadline.
        """
        running = self.retries.run(self.attempt([_GONE, RpcError(Status.UNAVAILABLE, "still")]), 0.1)
        self.assertNoResult(running)
        self.clock.advance(0.05)
        self.assertEqual("still", self.failureResultOf(running, RpcError).value.message)
        self.assertEqual([], self.clock.getDelayedCalls())

    def test_nothing_is_tried_for_somebody_who_has_gone(self) -> None:
        """
        No delay continues for a caller that cancelled.
        """
        running = self.retries.run(self.attempt([_GONE, 5]), 10)
        running.cancel()
        self.failureResultOf(running, CancelledError)
        self.assertEqual([], self.clock.getDelayedCalls())
        self.assertEqual(1, len(self.times))

    def test_a_delay_is_at_least_half_of_what_it_could_be_and_never_long(self) -> None:
        """
        So many callers that fail together do not retry together.
        """
        self.assertEqual((0.025, 0.05), (delay_s(1, 0), delay_s(1, 1)))
        self.assertEqual((0.5, 1.0), (delay_s(1000, 0), delay_s(1000, 1)))
