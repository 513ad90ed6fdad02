"""
Produce: appends record batches to partitions that this gateway leads.

 - v0-2: message sets, which become batches; Kafka 4 advertises these versions for librdkafka (KAFKA-18659)
 - v7: zstd is allowed (KIP-110)
 - v8: an error names the refused records (KIP-467)
 - v10: an error from a node that is not the leader names the leader and where it is (KIP-951)
 - v11: TRANSACTION_ABORTABLE (KIP-890)
 - v12: partitions become part of a transaction without AddPartitionsToTxn
 - v13: topics by id (KIP-516)

Most batches are appended at once, before acks are waited for, so the next request may start and is still appended
later. What acks waits for, and for how long, concerns the answer alone: an append that was started is never undone.

Three kinds of batches take time before they are appended, and everything after them on the same connection waits:

 - message sets, and batches of topics with a `compression.type`, are converted
 - each of many records is validated, if the topic asks for that
 - the coordinator of a transaction is asked about its first batch, for all partitions of a topic together, and its
   answer may have to be committed first
"""

from typing import cast

from twisted.internet.defer import Deferred

from kgateway.api import Context, Operation, Resource, api
from kgateway.cluster.view import Topic
from kgateway.messages.produce import ProduceRequest, ProduceResponse
from kgateway.produce.batch_append import (
    ACKS_ALL,
    ACKS_LEADER,
    NO_ACKS,
    BatchAppender,
    PartitionResponse,
    TopicAnswer,
    hang_up_on_errors,
)
from kgateway.produce.delayed_produce import (
    MESSAGE_SETS_UNTIL,
    DelayedTopic,
    append_delayed,
    takes_long,
)
from kgateway.produce.transaction_enrolment import enrol_topic
from kgateway.topic_lookup import as_kafka_error, topic_named, topic_of_id
from kgateway.wire.errors import ErrorCode, KafkaError
from kgateway.wire.types import Buffer

TopicData = ProduceRequest.TopicData

WRITE_TOPIC = Operation.WRITE.on(Resource.TOPIC)
WRITE_TRANSACTIONAL_ID = Operation.WRITE.on(Resource.TRANSACTIONAL_ID)

_ADMIN_CLIENT = "__admin_client"  # the client id by which Kafka's own tools may write to internal topics
_TOPIC_IDS_SINCE = 13
_ACKS = (NO_ACKS, ACKS_LEADER, ACKS_ALL)


@api(ProduceRequest, ProduceResponse, versions="0-13", overlaps=True, needs=(WRITE_TOPIC, WRITE_TRANSACTIONAL_ID))
def produce(
    request: ProduceRequest, context: Context
) -> ProduceResponse | Deferred[ProduceResponse] | Deferred[ProduceResponse | None] | None:
    if request.transactional_id is not None or request.acks not in _ACKS:
        try:
            _check(request, context)
        except KafkaError as error:
            if request.acks != NO_ACKS:
                raise
            context.refuse(error)
            hang_up_on_errors(context)
            return None
    appender = BatchAppender(request, context)
    delayed: list[DelayedTopic] = []
    answers: list[TopicAnswer] = []
    at_once = context.version > MESSAGE_SETS_UNTIL and context.session.appending is None
    for data in request.topic_data:  # in Python 3.11 a comprehension would be one call more; the same below
        answers.append(_append_topic(data, appender, delayed, at_once))
    if delayed:
        response: Deferred[ProduceResponse | None]
        response = Deferred.fromCoroutine(_append_delayed(delayed, appender, answers))
        return response
    return appender.response(answers)


def _check(request: ProduceRequest, context: Context) -> None:
    if request.acks not in _ACKS:
        raise KafkaError(ErrorCode.INVALID_REQUIRED_ACKS, f"acks is {request.acks}, not -1, 0 or 1")
    if request.transactional_id is not None:
        context.demand(*WRITE_TRANSACTIONAL_ID, request.transactional_id)


def _append_topic(data: TopicData, appender: BatchAppender, delayed: list[DelayedTopic], at_once: bool) -> TopicAnswer:
    answers: list[PartitionResponse] = []
    request, context = appender.request, appender.context
    try:
        topic = _writable(data, context)
    except Exception as error:
        name = data.name or str(data.topic_id)
        refusal = as_kafka_error(error, name)
        answers += [appender.refused(refusal, name, partition.index) for partition in data.partition_data]
    else:
        validates_in_slices = topic.config.validates_records and _any_takes_long(data)
        enrolment = None if request.transactional_id is None else enrol_topic(topic, data, request, context)
        if at_once and topic.config.codec is None and not validates_in_slices and enrolment is None:
            for partition in data.partition_data:
                answers.append(appender.append_sent(topic, partition))
        else:
            delayed.append(DelayedTopic(topic, data.partition_data, answers, enrolment))
    return TopicAnswer(name=data.name, topic_id=data.topic_id, partition_responses=answers)


def _writable(data: TopicData, context: Context) -> Topic:
    if context.version >= _TOPIC_IDS_SINCE:
        topic = topic_of_id(context, data.topic_id)
        context.demand(*WRITE_TOPIC, topic.name)
    else:
        context.demand(*WRITE_TOPIC, data.name)
        topic = topic_named(context, data.name)
    if topic.internal and context.client_id != _ADMIN_CLIENT:
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"only the gateway may write to {topic.name}")
    return topic


def _any_takes_long(data: TopicData) -> bool:
    return any(takes_long(cast("Buffer | None", partition.records)) for partition in data.partition_data)


async def _append_delayed(
    delayed: list[DelayedTopic], appender: BatchAppender, answers: list[TopicAnswer]
) -> ProduceResponse | None:
    await append_delayed(delayed, appender)
    response = appender.response(answers)
    return await response if isinstance(response, Deferred) else response
