"""
An address that does not answer is not called for a while.
"""

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from kgateway.broker.seaweed.calls.breaker import CircuitBreaker
from kgateway.broker.seaweed.grpc.status import RpcError, Status


class BreakerTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.clock = Clock()
        self.breaker = CircuitBreaker("filer:8888", self.clock)

    def fail(self, times: int) -> None:  # type: ignore[override]
        for _ in range(times):
            self.breaker.failed("no connection")

    def is_admitted(self) -> bool:
        try:
            self.breaker.admit()
        except RpcError as error:
            self.assertIs(Status.UNAVAILABLE, error.status)
            return False
        return True

    def test_four_failures_in_a_row_are_nothing(self) -> None:
        """
        Many failures with answers between them do not count either.
        """
        self.fail(4)
        self.breaker.succeeded()
        self.fail(4)
        self.assertTrue(self.is_admitted())

    def test_after_five_nobody_is_admitted(self) -> None:
        """
        The error contains the last failure.
        """
        self.fail(5)
        self.assertTrue(self.breaker.is_failing)
        with self.assertRaisesRegex(RpcError, "filer:8888 is not called.* 5 calls .* no connection"):
            self.breaker.admit()

    def test_one_probes_when_the_pause_is_over(self) -> None:
        """
        All others wait for its result.
        """
        self.fail(5)
        self.clock.advance(0.5)
        self.assertEqual([True, False, False], [self.is_admitted() for _ in range(3)])
        self.assertTrue(self.breaker.is_failing)
        self.breaker.succeeded()
        self.assertFalse(self.breaker.is_failing)
        self.assertEqual([True, True], [self.is_admitted() for _ in range(2)])

    def test_a_probe_that_fails_makes_the_pause_longer(self) -> None:
        """
        The pause doubles, up to two seconds.
        """
        self.fail(5)
        for pause in (0.5, 1, 2, 2, 2):
            self.clock.advance(pause - 0.01)
            self.assertFalse(self.is_admitted(), pause)
            self.clock.advance(0.01)
            self.assertTrue(self.is_admitted(), pause)
            self.fail(1)

    def test_a_probe_that_is_given_up_leaves_its_place_to_another(self) -> None:
        """
        Its caller did not wait for the result.
        """
        self.fail(5)
        self.clock.advance(0.5)
        self.assertTrue(self.is_admitted())
        self.breaker.withdrawn()
        self.assertTrue(self.is_admitted())
