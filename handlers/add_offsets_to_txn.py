"""
AddOffsetsToTxn: adds a group to a transaction that is going to commit its offsets.

 - v2: PRODUCER_FENCED
"""

from kgateway.api import Context, Operation, Resource, api
from kgateway.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from kgateway.transactions.coordinator import TransactionCoordinator
from kgateway.transactions.state import ProducerIdAndEpoch
from kgateway.wire.errors import ErrorCode


@api(
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
    versions="0-4",
    needs=(Operation.WRITE.on(Resource.TRANSACTIONAL_ID), Operation.READ.on(Resource.GROUP)),
)
async def add_offsets_to_txn(request: AddOffsetsToTxnRequest, context: Context) -> AddOffsetsToTxnResponse:
    context.demand(Operation.WRITE, Resource.TRANSACTIONAL_ID, request.transactional_id)
    context.demand(Operation.READ, Resource.GROUP, request.group_id)
    producer = ProducerIdAndEpoch(request.producer_id, request.producer_epoch)
    transactions = context.service(TransactionCoordinator)
    await transactions.add_offsets(request.transactional_id, producer, request.group_id, context.version)
    return AddOffsetsToTxnResponse(throttle_time_ms=0, error_code=ErrorCode.NONE)
