"""
Appends the batches of one Produce request and answers it: at once, or when all appends are acknowledged.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from kgateway.cluster.partition import Appended, Origin
from kgateway.cluster.view import ClusterView, Topic
from kgateway.context import Context
from kgateway.messages.produce import ProduceRequest, ProduceResponse
from kgateway.records.batch import TRANSACTIONAL_BIT, Batch, sent_batch
from kgateway.topic_lookup import as_kafka_error, name_leaders
from kgateway.wire.errors import ErrorCode, KafkaError, RecordsRefused

PartitionData = ProduceRequest.TopicData.PartitionData
TopicAnswer = ProduceResponse.Response
PartitionResponse = ProduceResponse.Response.PartitionResponse

NO_ACKS = 0
ACKS_LEADER = 1
ACKS_ALL = -1
_UNKNOWN = -1
_NO_ERROR = ErrorCode.NONE  # in Python 3.11 a look-up in the enum costs as much as three calls
_CLIENT, _ENROLLED, _VALIDATED, _BOTH = Origin.CLIENT, Origin.ENROLLED, Origin.VALIDATED, Origin.ENROLLED_AND_VALIDATED


class PendingAppend(NamedTuple):
    answer: PartitionResponse
    subject: str
    acknowledged: Deferred[None]


class BatchAppender:
    __slots__ = ("context", "pending", "request")

    def __init__(self, request: ProduceRequest, context: Context) -> None:
        self.request = request
        self.context = context
        self.pending: list[PendingAppend] = []  # appends that acks still waits for

    def append_sent(self, topic: Topic, data: PartitionData) -> PartitionResponse:
        log_start = _UNKNOWN
        try:
            partition = self.context.broker.partition(topic.id, data.index)
            log_start = partition.log_start
            records: Any = data.records  # of a decoded request they are one buffer
            batch, origin = sent_batch(records, self.context.version), _CLIENT
            if batch.header.attributes & TRANSACTIONAL_BIT:
                check_named(self.request)
                origin = _ENROLLED
            appended = partition.append(batch, origin, self.context.client_id)
            data.records = None  # the log has them, and the request lives until it is answered
        except Exception as error:
            return self.refused(as_kafka_error(error, f"{topic.name}-{data.index}"), topic.name, data.index, log_start)
        return self._answer(topic, data.index, appended)

    def append_prepared(self, topic: Topic, index: int, batch: Batch | None) -> PartitionResponse:
        """
        Append a batch that was converted and validated; `None` if the client sent no record.
        """
        if batch is None:
            return PartitionResponse(index=index, error_code=_NO_ERROR, base_offset=_UNKNOWN)
        log_start = _UNKNOWN
        try:
            partition = self.context.broker.partition(topic.id, index)
            log_start = partition.log_start
            origin = _BOTH if batch.header.attributes & TRANSACTIONAL_BIT else _VALIDATED
            appended = partition.append(batch, origin, self.context.client_id)
        except Exception as error:
            return self.refused(as_kafka_error(error, f"{topic.name}-{index}"), topic.name, index, log_start)
        return self._answer(topic, index, appended)

    def _answer(self, topic: Topic, index: int, appended: Appended) -> PartitionResponse:
        answer = PartitionResponse(
            index=index,
            error_code=_NO_ERROR,
            base_offset=appended.base_offset,
            log_append_time_ms=appended.log_append_time_ms,
            log_start_offset=appended.log_start,
        )
        if appended.stored is not None or appended.committed is not None:
            acknowledged = _acknowledged(appended, self.request.acks)
            if acknowledged is not None:
                self.pending.append(PendingAppend(answer, f"{topic.name}-{index}", acknowledged))
        return answer

    def refused(self, error: KafkaError, name: str, index: int, log_start: int = _UNKNOWN) -> PartitionResponse:
        """
        The answer for a partition to which nothing was appended.
        """
        return PartitionResponse(
            index=index,
            error_code=self.context.refuse(error, f"{name}-{index}"),
            error_message=error.message,
            base_offset=_UNKNOWN,
            log_start_offset=log_start,
            record_errors=_record_errors(error),
        )

    def response(self, answers: list[TopicAnswer]) -> ProduceResponse | Deferred[ProduceResponse] | None:
        """
        The answer, once everything is as durable as acks asks for; `None` if the client wants no answer.
        """
        if self.request.acks == NO_ACKS:
            hang_up_on_errors(self.context)
            return None
        response = ProduceResponse(responses=answers)
        if self.pending:
            return Acknowledgement(response, self.pending, self.request.timeout_ms, self.context).result
        return with_leaders(response, self.context) if self.context.refusals else response


class Acknowledgement:
    """
    Waits until all appends of a request have ended, or its time is up.
    """

    def __init__(
        self, response: ProduceResponse, pending: list[PendingAppend], timeout_ms: int, context: Context
    ) -> None:
        self.result: Deferred[ProduceResponse] = Deferred(lambda _: self._end())
        self._response = response
        self._pending = dict(enumerate(pending))
        self._context = context
        self._timer = context.clock.callLater(max(timeout_ms, 0) / 1000, self._time_out, timeout_ms)
        for key, append in enumerate(pending):
            append.acknowledged.addCallbacks(self._finish, self._failed, callbackArgs=(key,), errbackArgs=(key,))

    def _failed(self, failure: Failure, key: int) -> None:
        if key in self._pending:
            self._refuse(key, as_kafka_error(failure.value, self._pending[key].subject))

    def _time_out(self, timeout_ms: int) -> None:
        late = KafkaError(ErrorCode.REQUEST_TIMED_OUT, f"not acknowledged within {timeout_ms} ms; it may be stored")
        for key in list(self._pending):
            self._refuse(key, late)

    def _refuse(self, key: int, error: KafkaError) -> None:
        answer, subject, _ = self._pending[key]
        answer.error_code = self._context.refuse(error, subject)
        answer.error_message = error.message
        self._finish(None, key)

    def _finish(self, _: None, key: int) -> None:
        if self._pending.pop(key, None) and not self._pending:
            self._end()
            self.result.callback(with_leaders(self._response, self._context))

    def _end(self) -> None:
        self._pending.clear()
        if self._timer.active():
            self._timer.cancel()


def with_leaders(response: ProduceResponse, context: Context) -> ProduceResponse:
    if context.refusals:
        name_leaders(response, _misdirected(response, context.broker.view()), context)
    return response


def _misdirected(response: ProduceResponse, view: ClusterView) -> Iterator[tuple[Topic | None, int, PartitionResponse]]:
    for topic_answer in response.responses:
        topic = view.topics_by_id.get(topic_answer.topic_id) or view.topics.get(topic_answer.name)
        for answer in topic_answer.partition_responses:
            if answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER:
                yield topic, answer.index, answer


def check_named(request: ProduceRequest) -> None:
    if request.transactional_id is None:
        reason = "the batch is transactional, but the request names no transactional id"
        raise KafkaError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, reason)


def hang_up_on_errors(context: Context) -> None:
    """
    Close the connection of a producer that wants no answer, if there was an error: it learns of errors in no other way.
    """
    if context.refusals:
        context.hang_up = f"a Produce with acks=0 failed: {context.refusals[0].error}"


def _acknowledged(appended: Appended, acks: int) -> Deferred[None] | None:
    """
    The Deferred that the request's acks waits for. Failures of the other are dropped, because nobody waits for it.
    """
    wanted = appended.committed if acks == ACKS_ALL else appended.stored if acks == ACKS_LEADER else None
    appended.ignore(*(other for other in (appended.stored, appended.committed) if other is not wanted))
    return wanted


def _record_errors(error: KafkaError) -> list[PartitionResponse.RecordError]:
    records = error.records if isinstance(error, RecordsRefused) else ()
    return [
        PartitionResponse.RecordError(batch_index=number, batch_index_error_message=reason)
        for _, number, reason in records
    ]
