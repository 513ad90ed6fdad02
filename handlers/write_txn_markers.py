"""
WriteTxnMarkers: writes the markers of ended transactions, for a coordinator on another node, or for an administrator
that ends a hanging transaction.

 - v2: transaction_version (KIP-1228)
"""

from twisted.internet.defer import Deferred

from kgateway.api import Context, Operation, Resource, api
from kgateway.messages.write_txn_markers import WriteTxnMarkersRequest, WriteTxnMarkersResponse
from kgateway.topic_lookup import as_kafka_error
from kgateway.topic_partition import TopicPartition
from kgateway.transactions.markers import MarkerEntry, MarkerWriter
from kgateway.transactions.state import ProducerIdAndEpoch
from kgateway.wire.errors import ErrorCode

Asked = WriteTxnMarkersRequest.Marker
Answer = WriteTxnMarkersResponse.Marker


@api(
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
    versions="1-2",
    needs=(Operation.ALTER.on(Resource.CLUSTER), Operation.CLUSTER_ACTION.on(Resource.CLUSTER)),
)
async def write_txn_markers(request: WriteTxnMarkersRequest, context: Context) -> WriteTxnMarkersResponse:
    if not context.allowed(Operation.ALTER, Resource.CLUSTER):
        context.demand(Operation.CLUSTER_ACTION, Resource.CLUSTER)
    begun = [(marker, _begin(marker, context)) for marker in request.markers]
    return WriteTxnMarkersResponse(markers=[await _answer(marker, codes, context) for marker, codes in begun])


def _begin(marker: Asked, context: Context) -> dict[TopicPartition, ErrorCode | Deferred[None]]:
    """
    The error code of each marker, or the Deferred of its append.
    """
    producer = ProducerIdAndEpoch(marker.producer_id, marker.producer_epoch)
    ending = MarkerEntry(producer, marker.transaction_result, marker.coordinator_epoch, marker.transaction_version)
    partitions = [TopicPartition(topic.name, index) for topic in marker.topics for index in topic.partition_indexes]
    return {partition: _write(partition, ending, context) for partition in partitions}


def _write(partition: TopicPartition, ending: MarkerEntry, context: Context) -> ErrorCode | Deferred[None]:
    try:
        return context.service(MarkerWriter).write(partition, ending) or ErrorCode.NONE
    except Exception as error:
        return _refused(error, partition, context)


def _refused(error: BaseException, partition: TopicPartition, context: Context) -> ErrorCode:
    subject = f"{partition.topic}-{partition.index}"
    return context.refuse(as_kafka_error(error, subject), subject)


async def _answer(marker: Asked, begun: dict[TopicPartition, ErrorCode | Deferred[None]], context: Context) -> Answer:
    codes = {partition: await _code(outcome, partition, context) for partition, outcome in begun.items()}
    topics = [
        Answer.Topic(
            name=topic.name,
            partitions=[
                Answer.Topic.Partition(partition_index=index, error_code=codes[TopicPartition(topic.name, index)])
                for index in topic.partition_indexes
            ],
        )
        for topic in marker.topics
    ]
    return Answer(producer_id=marker.producer_id, topics=topics)


async def _code(outcome: ErrorCode | Deferred[None], partition: TopicPartition, context: Context) -> ErrorCode:
    if isinstance(outcome, ErrorCode):
        return outcome
    try:
        await outcome
    except Exception as error:
        return _refused(error, partition, context)
    return ErrorCode.NONE
