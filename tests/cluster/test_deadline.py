"""
How long clients wait for changes.
"""

from twisted.internet.defer import Deferred, fail, succeed
from twisted.internet.task import Clock
from twisted.logger import LogLevel, capturedLogs, formatEvent
from twisted.trial.unittest import SynchronousTestCase

from kgateway.cluster.deadline import Deadline
from kgateway.wire.errors import ErrorCode, KafkaError


class DeadlineTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.clock = Clock()
        self.work: Deferred[int] = Deferred()

    def wait(self, timeout_ms: int, work: Deferred[int] | None = None) -> Deferred[int]:
        return Deferred.fromCoroutine(Deadline(self.clock, timeout_ms).wait(work or self.work))

    def test_done(self) -> None:
        """
        A result in time is returned, and no timer remains.
        """
        waiting = self.wait(1000)
        self.work.callback(5)
        assert self.successResultOf(waiting) == 5
        assert self.clock.getDelayedCalls() == []

    def test_at_once(self) -> None:
        """
        A finished change is in time however little time there is.
        """
        for timeout_ms in (0, -1):
            assert self.successResultOf(self.wait(timeout_ms, succeed(5))) == 5, timeout_ms

    def test_a_failure_is_raised(self) -> None:
        waiting = self.wait(1000, fail(KafkaError(ErrorCode.TOPIC_ALREADY_EXISTS)))
        assert self.failureResultOf(waiting, KafkaError).value.code == ErrorCode.TOPIC_ALREADY_EXISTS

    def test_late(self) -> None:
        """
        A change that takes longer times out for the request, and continues all the same.
        """
        waiting = self.wait(1000)
        self.clock.advance(0.999)
        self.assertNoResult(waiting)
        self.clock.advance(0.001)
        assert self.failureResultOf(waiting, KafkaError).value.code == ErrorCode.REQUEST_TIMED_OUT
        assert not self.work.called
        self.work.callback(5)

    def test_late_failure(self) -> None:
        """
        A failure after the deadline is logged.
        """
        waiting = self.wait(10)
        self.clock.advance(1)
        self.failureResultOf(waiting, KafkaError)
        self.work.errback(RuntimeError("disk"))
        assert len(self.flushLoggedErrors(RuntimeError)) == 1

    def test_late_refusal(self) -> None:
        """
        A refusal after the deadline is logged in one line, and is no defect of the gateway.
        """
        waiting = self.wait(10)
        self.clock.advance(1)
        self.failureResultOf(waiting, KafkaError)
        with capturedLogs() as entries:
            self.work.errback(KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "topic a was deleted"))
        assert [entry["log_level"] for entry in entries] == [LogLevel.info]
        assert "topic a was deleted" in (formatEvent(entries[0]) or "")
        assert self.flushLoggedErrors() == []

    def test_one_for_all(self) -> None:
        """
        The time that one change takes is lost for the next.
        """
        deadline = Deadline(self.clock, 1000)
        self.clock.advance(0.6)
        waiting = Deferred.fromCoroutine(deadline.wait(self.work))
        self.clock.advance(0.4)
        self.failureResultOf(waiting, KafkaError)
        self.work.callback(5)
