"""
WriteTxnMarkers: a coordinator on another node, or an administrator who ends a transaction that hangs, says how
transactions ended.

 - v2: transaction_version (KIP-1228)
"""

from twisted.internet.defer import Deferred

from kgateway.api import Context, Operation, Resource, api
from kgateway.messages.write_txn_markers import WriteTxnMarkersRequest, WriteTxnMarkersResponse
from kgateway.partitions import foreseen
from kgateway.transactions.markers import Ending, Markers
from kgateway.transactions.state import Identity, Place
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
    begun = [(marker, _begun(marker, context)) for marker in request.markers]
    return WriteTxnMarkersResponse(markers=[await _answer(marker, codes, context) for marker, codes in begun])


def _begun(marker: Asked, context: Context) -> dict[Place, ErrorCode | Deferred[None]]:
    """
    What came of each, or what it waits for.
    """
    producer = Identity(marker.producer_id, marker.producer_epoch)
    ending = Ending(producer, marker.transaction_result, marker.coordinator_epoch, marker.transaction_version)
    places = [Place(topic.name, index) for topic in marker.topics for index in topic.partition_indexes]
    return {place: _write(place, ending, context) for place in places}


def _write(place: Place, ending: Ending, context: Context) -> ErrorCode | Deferred[None]:
    try:
        return context.service(Markers).write(place, ending) or ErrorCode.NONE
    except Exception as error:
        return _refused(error, place, context)


def _refused(error: BaseException, place: Place, context: Context) -> ErrorCode:
    subject = f"{place.topic}-{place.partition}"
    return context.refuse(foreseen(error, subject), subject)


async def _answer(marker: Asked, begun: dict[Place, ErrorCode | Deferred[None]], context: Context) -> Answer:
    codes = {place: await _code(outcome, place, context) for place, outcome in begun.items()}
    topics = [
        Answer.Topic(
            name=topic.name,
            partitions=[
                Answer.Topic.Partition(partition_index=index, error_code=codes[Place(topic.name, index)])
                for index in topic.partition_indexes
            ],
        )
        for topic in marker.topics
    ]
    return Answer(producer_id=marker.producer_id, topics=topics)


async def _code(outcome: ErrorCode | Deferred[None], place: Place, context: Context) -> ErrorCode:
    if isinstance(outcome, ErrorCode):
        return outcome
    try:
        await outcome
    except Exception as error:
        return _refused(error, place, context)
    return ErrorCode.NONE
