"""
Before a batch of a transaction is appended, the coordinator has to agree that its partition is part of the transaction.
"""

from collections.abc import Mapping, Set
from contextlib import suppress
from typing import cast

from twisted.internet.defer import Deferred

from kgateway.cluster.view import Topic
from kgateway.context import Context
from kgateway.interfaces import IPartition
from kgateway.messages.produce import ProduceRequest
from kgateway.produce.batch_append import check_named
from kgateway.records.batch import TRANSACTIONAL_BIT, Batch
from kgateway.topic_partition import TopicPartition
from kgateway.transactions.coordinator import TransactionCoordinator
from kgateway.transactions.enrolment import Dialect, beginning_producer, enrol
from kgateway.transactions.state import ProducerIdAndEpoch
from kgateway.wire.errors import ErrorCode, KafkaError
from kgateway.wire.types import Buffer

_ABORTABLE_SINCE = 11
_ADDS_SINCE = 12


def enrol_topic(
    topic: Topic, data: ProduceRequest.TopicData, request: ProduceRequest, context: Context
) -> Deferred[None] | None:
    """
    Enrol the partitions of a topic in which transactions begin. Returns `None` if the coordinator has agreed already,
    else a Deferred of its answer.
    """
    partitions_by_producer: dict[ProducerIdAndEpoch, set[TopicPartition]] = {}
    for partition in data.partition_data:
        with suppress(KafkaError):  # the append raises it again
            led = context.broker.partition(topic.id, partition.index)
            producer = beginning_producer(cast("Buffer | None", partition.records), led)
            if producer is not None:
                partitions_by_producer.setdefault(producer, set()).add(TopicPartition(topic.name, partition.index))
    if not partitions_by_producer:
        return None
    agreed: list[None] = []
    enrolment = Deferred.fromCoroutine(_enrol_all(partitions_by_producer, request, context)).addCallback(agreed.append)
    return None if agreed else enrolment


async def _enrol_all(
    partitions_by_producer: Mapping[ProducerIdAndEpoch, Set[TopicPartition]], request: ProduceRequest, context: Context
) -> None:
    for producer, partitions in partitions_by_producer.items():
        await _enrol(producer, partitions, request, context)


async def enrol_batch(
    batch: Batch, topic_partition: TopicPartition, partition: IPartition, request: ProduceRequest, context: Context
) -> None:
    """
    Enrol the partition of a converted batch if the batch is transactional; a KafkaError if the coordinator refuses.
    """
    header = batch.header
    if not header.attributes & TRANSACTIONAL_BIT:
        return
    check_named(request)
    try:
        await _enrol(ProducerIdAndEpoch(header.producer_id, header.producer_epoch), {topic_partition}, request, context)
    except KafkaError as error:
        if error.code.retriable:
            partition.producers().expect_again(header)
        raise


async def _enrol(
    producer: ProducerIdAndEpoch, partitions: Set[TopicPartition], request: ProduceRequest, context: Context
) -> None:
    assert request.transactional_id is not None
    version = context.version
    dialect = Dialect(version >= _ADDS_SINCE, version >= _ABORTABLE_SINCE, ErrorCode.NOT_ENOUGH_REPLICAS)
    await enrol(context.service(TransactionCoordinator), request.transactional_id, producer, partitions, dialect)
