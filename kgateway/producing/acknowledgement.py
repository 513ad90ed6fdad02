"""
The answer to a Produce request whose batches are appended: when it comes, and what it says of those that could not be.
"""

from collections.abc import Iterator
from typing import NamedTuple

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from kgateway.cluster.view import ClusterView, Topic
from kgateway.context import Context
from kgateway.messages.produce import ProduceResponse
from kgateway.partitions import foreseen, name_leaders
from kgateway.wire.errors import ErrorCode, KafkaError

Answer = ProduceResponse.Response.PartitionResponse


class Unsettled(NamedTuple):
    """
    An append whose acknowledgement is still to come.
    """

    answer: Answer
    subject: str
    acknowledged: Deferred[None]


class Acknowledgement:
    """
    The answer to a request until it is known how all its appends ended, or its time is up.
    """

    def __init__(
        self, response: ProduceResponse, unsettled: list[Unsettled], timeout_ms: int, context: Context
    ) -> None:
        self.result: Deferred[ProduceResponse] = Deferred(lambda _: self._end())
        self._response = response
        self._unsettled = dict(enumerate(unsettled))
        self._context = context
        self._timer = context.clock.callLater(max(timeout_ms, 0) / 1000, self._time_out, timeout_ms)
        for key, append in enumerate(unsettled):
            append.acknowledged.addCallbacks(self._settle, self._failed, callbackArgs=(key,), errbackArgs=(key,))

    def _failed(self, failure: Failure, key: int) -> None:
        if key in self._unsettled:
            self._refuse(key, foreseen(failure.value, self._unsettled[key].subject))

    def _time_out(self, timeout_ms: int) -> None:
        late = KafkaError(ErrorCode.REQUEST_TIMED_OUT, f"not acknowledged within {timeout_ms} ms, and may be yet")
        for key in list(self._unsettled):
            self._refuse(key, late)

    def _refuse(self, key: int, error: KafkaError) -> None:
        answer, subject, _ = self._unsettled[key]
        answer.error_code = self._context.refuse(error, subject)
        answer.error_message = error.message
        self._settle(None, key)

    def _settle(self, _: None, key: int) -> None:
        if self._unsettled.pop(key, None) and not self._unsettled:
            self._end()
            self.result.callback(finished(self._response, self._context))

    def _end(self) -> None:
        self._unsettled.clear()
        if self._timer.active():
            self._timer.cancel()


def finished(response: ProduceResponse, context: Context) -> ProduceResponse:
    """
    The response, which says of partitions that are not led here where they are.
    """
    if context.refusals:
        name_leaders(response, _misled(response, context.broker.view()), context)
    return response


def _misled(response: ProduceResponse, view: ClusterView) -> Iterator[tuple[Topic | None, int, Answer]]:
    for told in response.responses:
        topic = view.topics_by_id.get(told.topic_id) or view.topics.get(told.name)
        for answer in told.partition_responses:
            if answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER:
                yield topic, answer.index, answer
