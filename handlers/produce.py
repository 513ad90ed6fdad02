"""
Produce: appends record batches to partitions this gateway owns.

 - v0-2: advertised, as Kafka 4 does, for librdkafka's sake (KAFKA-18659); not served yet
 - v7: zstd is allowed (KIP-110)
 - v10: a refusal by who is not the leader names the leader and where it is (KIP-951)
 - v13: topics by id (KIP-516)

All batches are appended before anything is waited for, so the next request may start at once and still comes after.
What acks waits for, and for how long, concerns the answer alone: an append that was started is never taken back.
"""

from collections.abc import Iterator
from typing import NamedTuple, cast

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from kgateway.api import Context, Operation, Resource, api
from kgateway.cluster.partition import Appended, Origin
from kgateway.cluster.view import ClusterView, Topic
from kgateway.messages.produce import ProduceRequest, ProduceResponse
from kgateway.partitions import foreseen, name_leaders, topic_named, topic_of_id
from kgateway.records.batch import MAGIC, TRANSACTIONAL_BIT, Batch, Incomplete, read_batch
from kgateway.records.compression import Codec
from kgateway.wire.errors import ErrorCode, KafkaError
from kgateway.wire.malformed import Malformed
from kgateway.wire.types import Buffer

TopicData = ProduceRequest.TopicData
PartitionData = TopicData.PartitionData
TopicAnswer = ProduceResponse.Response
Answer = TopicAnswer.PartitionResponse

WRITE_TOPIC = Operation.WRITE.on(Resource.TOPIC)
WRITE_TRANSACTIONAL_ID = Operation.WRITE.on(Resource.TRANSACTIONAL_ID)

NO_ACKS = 0
ACKS_LEADER = 1
ACKS_ALL = -1

_ADMIN_CLIENT = "__admin_client"  # the client id by which Kafka's own tools may write to internal topics
_UNKNOWN = -1
_NO_ERROR = ErrorCode.NONE  # in Python 3.11 a look-up in the enum costs as much as three calls
_FROM_CLIENT = Origin.CLIENT
_MAGIC_AT = 16


class Unsettled(NamedTuple):
    """
    An append whose acknowledgement is still to come.
    """

    answer: Answer
    subject: str
    acknowledged: Deferred[None]


@api(
    ProduceRequest,
    ProduceResponse,
    versions="3-13",
    advertised="0-13",
    overlaps=True,
    needs=(WRITE_TOPIC, WRITE_TRANSACTIONAL_ID),
)
def produce(request: ProduceRequest, context: Context) -> ProduceResponse | Deferred[ProduceResponse] | None:
    try:
        _check(request, context)
    except KafkaError as error:
        if request.acks != NO_ACKS:
            raise
        context.refuse(error)
        return _unanswered(context)
    unsettled: list[Unsettled] = []
    answers: list[TopicAnswer] = []
    for data in request.topic_data:  # a comprehension is a call more, in Python 3.11; so below, too
        answers.append(_write_topic(data, request, context, unsettled))
    if request.acks == NO_ACKS:
        return _unanswered(context)
    response = ProduceResponse(responses=answers)
    if unsettled:
        return Acknowledgement(response, unsettled, request.timeout_ms, context).result
    return _finished(response, context)


def _check(request: ProduceRequest, context: Context) -> None:
    if request.acks not in (NO_ACKS, ACKS_LEADER, ACKS_ALL):
        raise KafkaError(ErrorCode.INVALID_REQUIRED_ACKS, f"acks is {request.acks}, not -1, 0 or 1")
    if request.transactional_id is not None:
        context.demand(*WRITE_TRANSACTIONAL_ID, request.transactional_id)


def _unanswered(context: Context) -> ProduceResponse | None:
    """
    A producer that wants no answer hears of an error by the end of its connection.
    """
    if context.refusals:
        context.hang_up = f"a Produce with acks=0 failed: {context.refusals[0].error}"
    return None


def _write_topic(data: TopicData, request: ProduceRequest, context: Context, unsettled: list[Unsettled]) -> TopicAnswer:
    answers: list[Answer] = []
    try:
        topic = _writable(data, context)
    except Exception as error:
        name = data.name or str(data.topic_id)
        told = foreseen(error, name)
        answers += [_refused(told, name, partition.index, context) for partition in data.partition_data]
    else:
        for partition in data.partition_data:
            answers.append(_write(topic, partition, request, context, unsettled))
    return TopicAnswer(name=data.name, topic_id=data.topic_id, partition_responses=answers)


def _writable(data: TopicData, context: Context) -> Topic:
    if context.version >= 13:
        topic = topic_of_id(context, data.topic_id)
        context.demand(*WRITE_TOPIC, topic.name)
    else:
        context.demand(*WRITE_TOPIC, data.name)
        topic = topic_named(context, data.name)
    if topic.internal and context.client_id != _ADMIN_CLIENT:
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"{topic.name} is written by the gateway alone")
    return topic


def _write(
    topic: Topic, data: PartitionData, request: ProduceRequest, context: Context, unsettled: list[Unsettled]
) -> Answer:
    log_start = _UNKNOWN
    try:
        partition = context.broker.partition(topic.id, data.index)
        log_start = partition.log_start
        batch = _the_batch(cast("Buffer | None", data.records), context.version)
        if batch.header.attributes & TRANSACTIONAL_BIT and request.transactional_id is None:
            reason = "the batch is transactional, and the request names no transactional id"
            raise KafkaError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, reason)
        appended = partition.append(batch, _FROM_CLIENT)
    except Exception as error:
        told = foreseen(error, f"{topic.name}-{data.index}")
        return _refused(told, topic.name, data.index, context, log_start)
    answer = Answer(
        index=data.index,
        error_code=_NO_ERROR,
        base_offset=appended.base_offset,
        log_append_time_ms=appended.log_append_time_ms,
        log_start_offset=appended.log_start,
    )
    if appended.stored is not None or appended.safe is not None:
        acknowledged = _acknowledged(appended, request.acks)
        if acknowledged is not None:
            unsettled.append(Unsettled(answer, f"{topic.name}-{data.index}", acknowledged))
    return answer


def _the_batch(records: Buffer | None, version: int) -> Batch:
    """
    The one batch that a partition of a request holds, refused as Kafka refuses it.
    """
    if not records:
        raise KafkaError(ErrorCode.INVALID_RECORD, "exactly one record batch is expected, and none came")
    try:
        batch = read_batch(records)
    except Malformed as malformed:
        old = len(records) > _MAGIC_AT and records[_MAGIC_AT] < MAGIC
        code = ErrorCode.INVALID_RECORD if old or isinstance(malformed, Incomplete) else ErrorCode.CORRUPT_MESSAGE
        raise KafkaError(code, str(malformed)) from None
    if version < 7 and batch.header.attributes & 7 == Codec.ZSTD:  # not `.codec`: the log refuses codecs without a name
        raise KafkaError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"zstd came with Produce v7, this is v{version}")
    if len(batch.data) != len(records):
        more = len(records) - len(batch.data)
        raise KafkaError(ErrorCode.INVALID_RECORD, f"exactly one record batch is expected, {more} bytes follow it")
    return batch


def _acknowledged(appended: Appended, acks: int) -> Deferred[None] | None:
    """
    What this acks waits for. If the rest fails that is of no interest here: nobody was promised it.
    """
    wanted = appended.safe if acks == ACKS_ALL else appended.stored if acks == ACKS_LEADER else None
    for other in (appended.stored, appended.safe):
        if other is not None and other is not wanted:
            other.addErrback(lambda _: None)
    return wanted


def _refused(error: KafkaError, name: str, index: int, context: Context, log_start: int = _UNKNOWN) -> Answer:
    return Answer(
        index=index,
        error_code=context.refuse(error, f"{name}-{index}"),
        error_message=error.message,
        base_offset=_UNKNOWN,
        log_start_offset=log_start,
    )


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
            self.result.callback(_finished(self._response, self._context))

    def _end(self) -> None:
        self._unsettled.clear()
        if self._timer.active():
            self._timer.cancel()


def _finished(response: ProduceResponse, context: Context) -> ProduceResponse:
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
