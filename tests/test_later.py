"""
Answers that come later.
"""

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase

from kgateway.later import Later
from kgateway.messages.heartbeat import HeartbeatResponse
from kgateway.wire.schema import Message

ANSWER = HeartbeatResponse(error_code=0)


class Answering(Later):
    """
    Ends when it is cancelled, with an answer or a failure.
    """

    def __init__(self, error: Exception | None = None) -> None:
        super().__init__()
        self.error = error

    def cancel(self) -> None:
        self._end()

    def _response(self) -> Message:
        if self.error:
            raise self.error
        return ANSWER


class LaterTests(SynchronousTestCase):
    def test_answer(self) -> None:
        """
        The listener is told once, however often it ends.
        """
        later, told = Answering(), list[object]()
        later.tell(told.append, self.fail)
        later.cancel()
        later.cancel()
        self.assertEqual([ANSWER], told)

    def test_failure(self) -> None:
        """
        A response that cannot be made is a failure.
        """
        later, failures = Answering(ZeroDivisionError()), list[Failure]()
        later.tell(self.fail, failures.append)
        later.cancel()
        self.assertIsInstance(failures[0].value, ZeroDivisionError)

    def test_told_to_nobody(self) -> None:
        """
        What nobody waits for is not even made.
        """
        Answering(ZeroDivisionError()).cancel()

    def test_awaited(self) -> None:
        """
        A coroutine gets the answer, or the failure; to cancel the coroutine is to cancel what it waits for.
        """

        async def wait(later: Later) -> Message | None:
            return await later

        answered = Deferred.fromCoroutine(wait(Answering()))
        self.assertNoResult(answered)
        answered.cancel()
        self.assertEqual(ANSWER, self.successResultOf(answered))
        failed = Deferred.fromCoroutine(wait(Answering(ZeroDivisionError())))
        failed.cancel()
        self.failureResultOf(failed, ZeroDivisionError)
