"""
Responses that arrive later.
"""

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase

from kgateway.late_response import LateResponse
from kgateway.messages.heartbeat import HeartbeatResponse
from kgateway.wire.schema import Message

ANSWER = HeartbeatResponse(error_code=0)


def answering(error: Exception | None = None) -> LateResponse:
    """
    A response that ends with a value or a failure when it is cancelled.
    """

    def respond() -> Message:
        if error:
            raise error
        return ANSWER

    late = LateResponse(lambda: late.end(respond))
    return late


class LaterTests(SynchronousTestCase):
    def test_response(self) -> None:
        """
        The listener is called once, however often the response ends.
        """
        later, told = answering(), list[object]()
        later.call_at_end(told.append, self.fail)
        later.cancel()
        later.cancel()
        self.assertEqual([ANSWER], told)

    def test_failure(self) -> None:
        """
        A response whose construction raises is a failure.
        """
        later, failures = answering(ZeroDivisionError()), list[Failure]()
        later.call_at_end(self.fail, failures.append)
        later.cancel()
        self.assertIsInstance(failures[0].value, ZeroDivisionError)

    def test_without_a_listener(self) -> None:
        """
        A response that nobody waits for is not even constructed.
        """
        answering(ZeroDivisionError()).cancel()

    def test_awaited(self) -> None:
        """
        A coroutine gets the value, or the failure; cancelling the coroutine cancels the response.
        """

        async def wait(later: LateResponse) -> Message | None:
            return await later

        answered = Deferred.fromCoroutine(wait(answering()))
        self.assertNoResult(answered)
        answered.cancel()
        self.assertEqual(ANSWER, self.successResultOf(answered))
        failed = Deferred.fromCoroutine(wait(answering(ZeroDivisionError())))
        failed.cancel()
        self.failureResultOf(failed, ZeroDivisionError)
