"""
Batches that take time before they are appended: they are converted, validated record by record, or wait for the
coordinator of their transaction. Meanwhile everything after them on the same connection waits for its turn.
"""

from contextlib import suppress
from typing import NamedTuple, cast

from twisted.internet.defer import Deferred

from kgateway.cluster.config import TopicConfig
from kgateway.cluster.view import Topic
from kgateway.context import Context
from kgateway.conversion.slices import IncomingSlices
from kgateway.produce.batch_append import BatchAppender, PartitionData, PartitionResponse
from kgateway.produce.transaction_enrolment import enrol_batch
from kgateway.records.batch import (
    CODEC_BITS,
    MAGIC,
    MAGIC_AT,
    Batch,
    check_produced,
    check_size,
    read_header,
    sent_batch,
)
from kgateway.records.batch_rewrite import recompressed
from kgateway.records.from_message_set import BatchTarget, upgraded
from kgateway.records.slices import AT_ONCE_MAX, Steps
from kgateway.topic_lookup import as_kafka_error
from kgateway.topic_partition import TopicPartition
from kgateway.wire.errors import KafkaError, Malformed
from kgateway.wire.types import Buffer

MESSAGE_SETS_UNTIL = 2  # the last version of Produce that has them


PreparedBatch = Deferred[Batch | None]


class DelayedTopic(NamedTuple):
    """
    A topic whose batches cannot be appended yet: its data, the list that its answers go to, and the pending consent of
    the transaction coordinators.
    """

    topic: Topic
    data: list[PartitionData]
    answers: list[PartitionResponse]
    enrolment: Deferred[None] | None


async def append_delayed(delayed: list[DelayedTopic], appender: BatchAppender) -> None:
    """
    Append the batches once they are prepared and everything that was received before is appended.
    """
    context = appender.context
    before, own = context.session.appending, Deferred[None]()
    context.session.appending = own
    preparations = [
        (waiting, data, PreparedBatch.fromCoroutine(_prepare(waiting.topic, data, context)))
        for waiting in delayed
        for data in waiting.data
    ]
    try:
        if before:
            await before
        for waiting in delayed:
            if waiting.enrolment is not None:
                with suppress(KafkaError):  # enrol_batch raises it again for each batch
                    await waiting.enrolment
        for waiting, data, preparation in preparations:
            waiting.answers.append(await _append(waiting.topic, data.index, preparation, appender))
            data.records = None  # the log has the batch, and the request lives until it is answered
    finally:
        _let_next_append(own, context)


async def _prepare(topic: Topic, data: PartitionData, context: Context) -> Batch | None:
    partition = context.broker.partition(topic.id, data.index)  # raises before any work is done

    def steps() -> Steps[Batch | None]:
        records = cast("Buffer | None", data.records)
        batch = yield from converted_batch(records, context.version, topic.config)
        if batch is not None:
            yield from partition.validate(batch)
        return batch

    return await context.service(IncomingSlices).do(steps())


async def _append(topic: Topic, index: int, preparation: PreparedBatch, appender: BatchAppender) -> PartitionResponse:
    try:
        batch = await preparation
        if batch is not None:
            partition = appender.context.broker.partition(topic.id, index)
            await enrol_batch(batch, TopicPartition(topic.name, index), partition, appender.request, appender.context)
    except Exception as error:
        return appender.refused(as_kafka_error(error, f"{topic.name}-{index}"), topic.name, index)
    return appender.append_prepared(topic, index, batch)


def _let_next_append(own: Deferred[None], context: Context) -> None:
    if context.session.appending is own:
        context.session.appending = None
    else:
        context.clock.callLater(0, own.callback, None)  # not at once: many may wait for one another


def takes_long(records: Buffer | None) -> bool:
    """
    Whether it may take more than some milliseconds to validate all records of the batch.
    """
    try:
        header = read_header(records or b"")
    except Malformed:  # sent_batch raises it again
        return False
    return header.records_count > AT_ONCE_MAX or bool(header.attributes & CODEC_BITS)


def converted_batch(records: Buffer | None, version: int, config: TopicConfig) -> Steps[Batch | None]:
    """
    The batch that is appended: made of a message set if the client sent one, and compressed as the topic wants it. Like
    Kafka, this makes nothing of a set without messages: `None`.
    """
    if version <= MESSAGE_SETS_UNTIL and not _begins_with_batch(records):
        target = BatchTarget(config.max_message_bytes, config.codec, config.compression_level)
        return (yield from upgraded(records or b"", target))
    batch = sent_batch(records, version)
    codec = config.codec
    if codec is None or batch.header.attributes & CODEC_BITS == codec:
        return batch
    check_size(batch, config.max_message_bytes)
    check_produced(batch)  # as it came: the converted batch no longer shows it
    return (yield from recompressed(batch, codec, config.compression_level))


def _begins_with_batch(records: Buffer | None) -> bool:
    return records is not None and len(records) > MAGIC_AT and records[MAGIC_AT] == MAGIC
