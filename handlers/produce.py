"""
Produce: appends record batches to partitions this gateway owns.

 - v0-2: message sets, which become batches; Kafka 4 tells of these versions for librdkafka's sake (KAFKA-18659)
 - v7: zstd is allowed (KIP-110)
 - v8: a refusal names the records that it is for (KIP-467)
 - v10: a refusal by who is not the leader names the leader and where it is (KIP-951)
 - v11: TRANSACTION_ABORTABLE (KIP-890)
 - v12: partitions become part of a transaction without AddPartitionsToTxn
 - v13: topics by id (KIP-516)

All batches are appended before anything is waited for, so the next request may start at once and still comes after.
What acks waits for, and for how long, concerns the answer alone: an append that was started is never taken back.

Message sets, and batches of topics with a `compression.type`, are made into what is appended first, which takes time,
and so it does to look at each of many records, where the topic asks for that. Of the first batch of a transaction its
coordinator is asked (`transactions/joining.py`), for all partitions of a topic together; that takes time where what it
writes is not safe at once. Until then all that comes behind them through the same connection waits for its turn.
"""

from collections.abc import Mapping, Set
from contextlib import suppress
from typing import NamedTuple, cast

from twisted.internet.defer import Deferred

from kgateway.acknowledgement import Acknowledgement, Answer, Unsettled, finished
from kgateway.api import Context, Operation, Resource, api
from kgateway.cluster.partition import Appended, Origin
from kgateway.cluster.view import Topic
from kgateway.converting.incoming import MESSAGE_SETS_UNTIL, incoming, takes_long, the_batch
from kgateway.converting.slices import IncomingSlices
from kgateway.messages.produce import ProduceRequest, ProduceResponse
from kgateway.partitions import foreseen, topic_named, topic_of_id
from kgateway.records.batch import TRANSACTIONAL_BIT, Batch
from kgateway.records.steps import Steps
from kgateway.transactions.joining import Dialect, beginner, join
from kgateway.transactions.state import Identity, Place
from kgateway.transactions.transactions import Transactions
from kgateway.wire.errors import ErrorCode, KafkaError, RecordsRefused
from kgateway.wire.types import Buffer

TopicData = ProduceRequest.TopicData
PartitionData = TopicData.PartitionData
TopicAnswer = ProduceResponse.Response

WRITE_TOPIC = Operation.WRITE.on(Resource.TOPIC)
WRITE_TRANSACTIONAL_ID = Operation.WRITE.on(Resource.TRANSACTIONAL_ID)

NO_ACKS = 0
ACKS_LEADER = 1
ACKS_ALL = -1

_ADMIN_CLIENT = "__admin_client"  # the client id by which Kafka's own tools may write to internal topics
_ABORTABLE_SINCE = 11
_ADDS_SINCE = 12
_UNKNOWN = -1
_NO_ERROR = ErrorCode.NONE  # in Python 3.11 a look-up in the enum costs as much as three calls
_FROM_CLIENT = Origin.CLIENT


class Unmade(NamedTuple):
    """
    A topic whose batches cannot be appended yet: what they are made of, where the answers for them go, and what the
    coordinators of their transactions were asked.
    """

    topic: Topic
    data: list[PartitionData]
    answers: list[Answer]
    joining: Deferred[None] | None


@api(
    ProduceRequest,
    ProduceResponse,
    versions="0-13",
    overlaps=True,
    needs=(WRITE_TOPIC, WRITE_TRANSACTIONAL_ID),
)
def produce(
    request: ProduceRequest, context: Context
) -> ProduceResponse | Deferred[ProduceResponse] | Deferred[ProduceResponse | None] | None:
    try:
        _check(request, context)
    except KafkaError as error:
        if request.acks != NO_ACKS:
            raise
        context.refuse(error)
        return _unanswered(context)
    unsettled: list[Unsettled] = []
    unmade: list[Unmade] = []
    answers: list[TopicAnswer] = []
    at_once = context.version > MESSAGE_SETS_UNTIL and context.session.appending is None
    for data in request.topic_data:  # a comprehension is a call more, in Python 3.11; so below, too
        answers.append(_write_topic(data, request, context, unsettled, unmade, at_once))
    if unmade:
        later: Deferred[ProduceResponse | None]
        later = Deferred.fromCoroutine(_write_made(unmade, answers, unsettled, request, context))
        return later
    return _answered(answers, unsettled, request, context)


def _check(request: ProduceRequest, context: Context) -> None:
    if request.acks not in (NO_ACKS, ACKS_LEADER, ACKS_ALL):
        raise KafkaError(ErrorCode.INVALID_REQUIRED_ACKS, f"acks is {request.acks}, not -1, 0 or 1")
    if request.transactional_id is not None:
        context.demand(*WRITE_TRANSACTIONAL_ID, request.transactional_id)


async def _write_made(
    unmade: list[Unmade],
    answers: list[TopicAnswer],
    unsettled: list[Unsettled],
    request: ProduceRequest,
    context: Context,
) -> ProduceResponse | None:
    """
    Append what is made of the records that came, once it is made, and what came before is appended.
    """
    before, own = context.session.appending, Deferred[None]()
    context.session.appending = own
    makings = [
        (one, data, Deferred.fromCoroutine(_made(one.topic, data, context))) for one in unmade for data in one.data
    ]
    try:
        if before:
            await before
        for one in unmade:
            if one.joining is not None:
                with suppress(KafkaError):  # which each batch is told when it is asked of it
                    await one.joining
        for one, data, making in makings:
            one.answers.append(await _write_one(one.topic, data, making, request, context, unsettled))
    finally:
        _appended(own, context)
    answered = _answered(answers, unsettled, request, context)
    return await answered if isinstance(answered, Deferred) else answered


async def _write_one(
    topic: Topic,
    data: PartitionData,
    making: Deferred[Batch | None],
    request: ProduceRequest,
    context: Context,
    unsettled: list[Unsettled],
) -> Answer:
    try:
        batch = await making
        if batch is not None and batch.header.attributes & TRANSACTIONAL_BIT:
            _check_named(request)
            who = Identity(batch.header.producer_id, batch.header.producer_epoch)
            await _join(who, {Place(topic.name, data.index)}, request, context)
    except Exception as error:
        return _refused(foreseen(error, f"{topic.name}-{data.index}"), topic.name, data.index, context)
    if batch is None:
        return Answer(index=data.index, error_code=_NO_ERROR, base_offset=_UNKNOWN)
    return _write(topic, data, request, context, unsettled, batch)


async def _join(who: Identity, places: Set[Place], request: ProduceRequest, context: Context) -> None:
    assert request.transactional_id is not None
    version = context.version
    dialect = Dialect(version >= _ADDS_SINCE, version >= _ABORTABLE_SINCE, ErrorCode.NOT_ENOUGH_REPLICAS)
    await join(context.service(Transactions), request.transactional_id, who, places, dialect)


def _appended(own: Deferred[None], context: Context) -> None:
    if context.session.appending is own:
        context.session.appending = None
    else:
        context.clock.callLater(0, own.callback, None)  # not at once: many may wait for one another


async def _made(topic: Topic, data: PartitionData, context: Context) -> Batch | None:
    partition = context.broker.partition(topic.id, data.index)  # which is refused before any work

    def steps() -> Steps[Batch | None]:
        records = cast("Buffer | None", data.records)
        batch = yield from incoming(records, context.version, topic.config)
        if batch is not None:
            yield from partition.judge(batch)
        return batch

    return await context.service(IncomingSlices).do(steps())


def _answered(
    answers: list[TopicAnswer], unsettled: list[Unsettled], request: ProduceRequest, context: Context
) -> ProduceResponse | Deferred[ProduceResponse] | None:
    if request.acks == NO_ACKS:
        return _unanswered(context)
    response = ProduceResponse(responses=answers)
    if unsettled:
        return Acknowledgement(response, unsettled, request.timeout_ms, context).result
    return finished(response, context) if context.refusals else response


def _unanswered(context: Context) -> ProduceResponse | None:
    """
    A producer that wants no answer hears of an error by the end of its connection.
    """
    if context.refusals:
        context.hang_up = f"a Produce with acks=0 failed: {context.refusals[0].error}"
    return None


def _write_topic(
    data: TopicData,
    request: ProduceRequest,
    context: Context,
    unsettled: list[Unsettled],
    unmade: list[Unmade],
    at_once: bool,
) -> TopicAnswer:
    answers: list[Answer] = []
    try:
        topic = _writable(data, context)
    except Exception as error:
        name = data.name or str(data.topic_id)
        told = foreseen(error, name)
        answers += [_refused(told, name, partition.index, context) for partition in data.partition_data]
    else:
        takes_time = topic.config.judges_records and _take_long(data)
        joining = None if request.transactional_id is None else _joining(topic, data, request, context)
        if at_once and topic.config.codec is None and not takes_time and joining is None:
            for partition in data.partition_data:
                answers.append(_write(topic, partition, request, context, unsettled))
        else:
            unmade.append(Unmade(topic, data.partition_data, answers, joining))
    return TopicAnswer(name=data.name, topic_id=data.topic_id, partition_responses=answers)


def _joining(topic: Topic, data: TopicData, request: ProduceRequest, context: Context) -> Deferred[None] | None:
    """
    Ask the coordinator of what begins here. `None` where it has agreed by then, else what fires or fails as it does.
    """
    beginning: dict[Identity, set[Place]] = {}
    for partition in data.partition_data:
        with suppress(KafkaError):  # which is told where it is written
            owned = context.broker.partition(topic.id, partition.index)
            who = beginner(cast("Buffer | None", partition.records), owned)
            if who is not None:
                beginning.setdefault(who, set()).add(Place(topic.name, partition.index))
    if not beginning:
        return None
    agreed: list[None] = []
    joining = Deferred.fromCoroutine(_join_all(beginning, request, context)).addCallback(agreed.append)
    return None if agreed else joining


async def _join_all(beginning: Mapping[Identity, Set[Place]], request: ProduceRequest, context: Context) -> None:
    for who, places in beginning.items():
        await _join(who, places, request, context)


def _take_long(data: TopicData) -> bool:
    return any(takes_long(cast("Buffer | None", partition.records)) for partition in data.partition_data)


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
    topic: Topic,
    data: PartitionData,
    request: ProduceRequest,
    context: Context,
    unsettled: list[Unsettled],
    batch: Batch | None = None,
) -> Answer:
    log_start, origin = _UNKNOWN, Origin.JUDGED
    if batch is not None and batch.header.attributes & TRANSACTIONAL_BIT:
        origin = Origin.JOINED
    try:
        partition = context.broker.partition(topic.id, data.index)
        log_start = partition.log_start
        if batch is None:
            batch, origin = the_batch(cast("Buffer | None", data.records), context.version), _FROM_CLIENT
            if batch.header.attributes & TRANSACTIONAL_BIT:
                _check_named(request)
                origin = Origin.ADDED
        appended = partition.append(batch, origin)
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


def _check_named(request: ProduceRequest) -> None:
    if request.transactional_id is None:
        reason = "the batch is transactional, and the request names no transactional id"
        raise KafkaError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, reason)


def _acknowledged(appended: Appended, acks: int) -> Deferred[None] | None:
    """
    What this acks waits for. If the rest fails that is of no interest here: nobody was promised it.
    """
    wanted = appended.safe if acks == ACKS_ALL else appended.stored if acks == ACKS_LEADER else None
    appended.leave(*(other for other in (appended.stored, appended.safe) if other is not wanted))
    return wanted


def _refused(error: KafkaError, name: str, index: int, context: Context, log_start: int = _UNKNOWN) -> Answer:
    return Answer(
        index=index,
        error_code=context.refuse(error, f"{name}-{index}"),
        error_message=error.message,
        base_offset=_UNKNOWN,
        log_start_offset=log_start,
        record_errors=_blamed(error),
    )


def _blamed(error: KafkaError) -> list[Answer.RecordError]:
    records = error.records if isinstance(error, RecordsRefused) else ()
    return [Answer.RecordError(batch_index=number, batch_index_error_message=reason) for _, number, reason in records]
