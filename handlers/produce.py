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
coordinator is asked, for all partitions of a topic together; that takes time where what it writes is not safe at once.
Until then all that comes behind them through the same connection waits for its turn.
"""

from typing import cast

from twisted.internet.defer import Deferred

from kgateway.api import Context, Operation, Resource, api
from kgateway.cluster.view import Topic
from kgateway.converting.incoming import MESSAGE_SETS_UNTIL, takes_long
from kgateway.messages.produce import ProduceRequest, ProduceResponse
from kgateway.partitions import foreseen, topic_named, topic_of_id
from kgateway.producing.acknowledgement import Answer
from kgateway.producing.beginning import joining
from kgateway.producing.making import Unmade, write_made
from kgateway.producing.writing import ACKS_ALL, ACKS_LEADER, NO_ACKS, TopicAnswer, Writing, unanswered
from kgateway.wire.errors import ErrorCode, KafkaError
from kgateway.wire.types import Buffer

TopicData = ProduceRequest.TopicData

WRITE_TOPIC = Operation.WRITE.on(Resource.TOPIC)
WRITE_TRANSACTIONAL_ID = Operation.WRITE.on(Resource.TRANSACTIONAL_ID)

_ADMIN_CLIENT = "__admin_client"  # the client id by which Kafka's own tools may write to internal topics
_TOPIC_IDS_SINCE = 13


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
        unanswered(context)
        return None
    writing = Writing(request, context)
    unmade: list[Unmade] = []
    answers: list[TopicAnswer] = []
    at_once = context.version > MESSAGE_SETS_UNTIL and context.session.appending is None
    for data in request.topic_data:  # a comprehension is a call more, in Python 3.11; so below, too
        answers.append(_write_topic(data, writing, unmade, at_once))
    if unmade:
        later: Deferred[ProduceResponse | None]
        later = Deferred.fromCoroutine(_made(unmade, writing, answers))
        return later
    return writing.response(answers)


def _check(request: ProduceRequest, context: Context) -> None:
    if request.acks not in (NO_ACKS, ACKS_LEADER, ACKS_ALL):
        raise KafkaError(ErrorCode.INVALID_REQUIRED_ACKS, f"acks is {request.acks}, not -1, 0 or 1")
    if request.transactional_id is not None:
        context.demand(*WRITE_TRANSACTIONAL_ID, request.transactional_id)


def _write_topic(data: TopicData, writing: Writing, unmade: list[Unmade], at_once: bool) -> TopicAnswer:
    answers: list[Answer] = []
    request, context = writing.request, writing.context
    try:
        topic = _writable(data, context)
    except Exception as error:
        name = data.name or str(data.topic_id)
        told = foreseen(error, name)
        answers += [writing.refused(told, name, partition.index) for partition in data.partition_data]
    else:
        takes_time = topic.config.judges_records and _take_long(data)
        asked = None if request.transactional_id is None else joining(topic, data, request, context)
        if at_once and topic.config.codec is None and not takes_time and asked is None:
            for partition in data.partition_data:
                answers.append(writing.as_it_came(topic, partition))
        else:
            unmade.append(Unmade(topic, data.partition_data, answers, asked))
    return TopicAnswer(name=data.name, topic_id=data.topic_id, partition_responses=answers)


def _writable(data: TopicData, context: Context) -> Topic:
    if context.version >= _TOPIC_IDS_SINCE:
        topic = topic_of_id(context, data.topic_id)
        context.demand(*WRITE_TOPIC, topic.name)
    else:
        context.demand(*WRITE_TOPIC, data.name)
        topic = topic_named(context, data.name)
    if topic.internal and context.client_id != _ADMIN_CLIENT:
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"{topic.name} is written by the gateway alone")
    return topic


def _take_long(data: TopicData) -> bool:
    return any(takes_long(cast("Buffer | None", partition.records)) for partition in data.partition_data)


async def _made(unmade: list[Unmade], writing: Writing, answers: list[TopicAnswer]) -> ProduceResponse | None:
    await write_made(unmade, writing)
    response = writing.response(answers)
    return await response if isinstance(response, Deferred) else response
