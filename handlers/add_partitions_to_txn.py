"""
AddPartitionsToTxn: a transaction is going to write to some partitions: all of them are added, or none.

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
from kgateway.partitions import foreseen, topic_named
from kgateway.transactions.state import Identity, Place
from kgateway.transactions.transactions import Transactions
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
    places = {Place(topic.name, index) for topic in asked.topics for index in topic.partitions}
    try:
        codes = await _codes(asked, places, context)
    except Exception as error:
        code = context.refuse(foreseen(error, asked.transactional_id), asked.transactional_id)
        codes = dict.fromkeys(places, code)
    return Answer(transactional_id=asked.transactional_id, topic_results=_results(asked.topics, codes))


async def _codes(asked: Asked, places: set[Place], context: Context) -> Mapping[Place, ErrorCode]:
    context.demand(Operation.WRITE, Resource.TRANSACTIONAL_ID, asked.transactional_id)
    transactions, producer = context.service(Transactions), Identity(asked.producer_id, asked.producer_epoch)
    if asked.verify_only:
        return transactions.verify(asked.transactional_id, producer, places)
    refused = dict(_refused(asked.topics, context))
    if refused:
        return dict.fromkeys(places, ErrorCode.OPERATION_NOT_ATTEMPTED) | refused
    await transactions.add_partitions(asked.transactional_id, producer, places, context.version)
    return dict.fromkeys(places, ErrorCode.NONE)


def _refused(topics: Sequence[Topic], context: Context) -> Iterator[tuple[Place, ErrorCode]]:
    """
    Partitions that the client may not write to, or that are not there. Other nodes have asked that already.
    """
    for topic in topics:
        for index in topic.partitions:
            try:
                _check(topic.name, index, context)
            except KafkaError as error:
                yield Place(topic.name, index), context.refuse(error, f"{topic.name}-{index}")


def _check(name: str, index: int, context: Context) -> None:
    from_client = context.version < _BETWEEN_NODES
    if from_client:
        context.demand(Operation.WRITE, Resource.TOPIC, name)
    topic = topic_named(context, name)
    if from_client and topic.internal:
        raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, f"topic {name} is for coordinators to write to")
    if index not in range(len(topic.partitions)):
        raise topic.no_partition(index)


def _results(topics: Sequence[Topic], codes: Mapping[Place, ErrorCode]) -> list[TopicResult]:
    return [
        TopicResult(
            name=topic.name,
            results_by_partition=[
                PartitionResult(partition_index=index, partition_error_code=codes[Place(topic.name, index)])
                for index in topic.partitions
            ],
        )
        for topic in topics
    ]
