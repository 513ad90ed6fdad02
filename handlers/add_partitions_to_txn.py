"""
AddPartitionsToTxn: adds partitions to a transaction, all of them or none.

 - v2: PRODUCER_FENCED
 - v4: between nodes: several transactions at a time; verify_only: whether they were added (KIP-890)
"""

from collections.abc import Iterator, Mapping, Sequence

from kgateway.api import Context, Operation, Resource, api
from kgateway.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    PartitionResult,
    Topic,
    TopicResult,
)
from kgateway.topic_lookup import as_kafka_error, topic_named
from kgateway.topic_partition import TopicPartition
from kgateway.transactions.coordinator import TransactionCoordinator
from kgateway.transactions.state import ProducerIdAndEpoch
from kgateway.wire.errors import ErrorCode, KafkaError

Asked = AddPartitionsToTxnRequest.Transaction
Answer = AddPartitionsToTxnResponse.ResultsByTransaction

_BETWEEN_NODES = 4


@api(
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    versions="0-5",
    needs=(
        Operation.WRITE.on(Resource.TRANSACTIONAL_ID),
        Operation.WRITE.on(Resource.TOPIC),
        Operation.CLUSTER_ACTION.on(Resource.CLUSTER),
    ),
)
async def add_partitions_to_txn(request: AddPartitionsToTxnRequest, context: Context) -> AddPartitionsToTxnResponse:
    if context.version < _BETWEEN_NODES:
        outcome = await _outcome(_in_new_form(request), context)
        return AddPartitionsToTxnResponse(throttle_time_ms=0, results_by_topic_v3_and_below=outcome.topic_results)
    context.demand(Operation.CLUSTER_ACTION, Resource.CLUSTER)
    outcomes = [await _outcome(asked, context) for asked in request.transactions]
    return AddPartitionsToTxnResponse(throttle_time_ms=0, error_code=ErrorCode.NONE, results_by_transaction=outcomes)


def _in_new_form(request: AddPartitionsToTxnRequest) -> Asked:
    return Asked(
        transactional_id=request.v3_and_below_transactional_id,
        producer_id=request.v3_and_below_producer_id,
        producer_epoch=request.v3_and_below_producer_epoch,
        topics=request.v3_and_below_topics,
    )


async def _outcome(asked: Asked, context: Context) -> Answer:
    partitions = {TopicPartition(topic.name, index) for topic in asked.topics for index in topic.partitions}
    try:
        codes = await _codes(asked, partitions, context)
    except Exception as error:
        code = context.refuse(as_kafka_error(error, asked.transactional_id), asked.transactional_id)
        codes = dict.fromkeys(partitions, code)
    return Answer(transactional_id=asked.transactional_id, topic_results=_results(asked.topics, codes))


async def _codes(asked: Asked, partitions: set[TopicPartition], context: Context) -> Mapping[TopicPartition, ErrorCode]:
    context.demand(Operation.WRITE, Resource.TRANSACTIONAL_ID, asked.transactional_id)
    transactions, producer = (
        context.service(TransactionCoordinator),
        ProducerIdAndEpoch(asked.producer_id, asked.producer_epoch),
    )
    if asked.verify_only:
        return transactions.verify(asked.transactional_id, producer, partitions)
    refused = dict(_refused(asked.topics, context))
    if refused:
        return dict.fromkeys(partitions, ErrorCode.OPERATION_NOT_ATTEMPTED) | refused
    await transactions.add_partitions(asked.transactional_id, producer, partitions, context.version)
    return dict.fromkeys(partitions, ErrorCode.NONE)


def _refused(topics: Sequence[Topic], context: Context) -> Iterator[tuple[TopicPartition, ErrorCode]]:
    """
    The partitions that the client may not write to, or that do not exist. Nodes have checked the permissions of their
    clients already.
    """
    for topic in topics:
        for index in topic.partitions:
            try:
                _check(topic.name, index, context)
            except KafkaError as error:
                yield TopicPartition(topic.name, index), context.refuse(error, f"{topic.name}-{index}")


def _check(name: str, index: int, context: Context) -> None:
    from_client = context.version < _BETWEEN_NODES
    if from_client:
        context.demand(Operation.WRITE, Resource.TOPIC, name)
    topic = topic_named(context, name)
    if from_client and topic.internal:
        raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, f"only coordinators may write to topic {name}")
    if index not in range(len(topic.partitions)):
        raise topic.no_partition(index)


def _results(topics: Sequence[Topic], codes: Mapping[TopicPartition, ErrorCode]) -> list[TopicResult]:
    return [
        TopicResult(
            name=topic.name,
            results_by_partition=[
                PartitionResult(partition_index=index, partition_error_code=codes[TopicPartition(topic.name, index)])
                for index in topic.partitions
            ],
        )
        for topic in topics
    ]
