"""
EndTxn: a producer commits or aborts its transaction. The answer means that the outcome is durable. The markers are
written afterwards, after a crash by the next process.

 - v2: PRODUCER_FENCED
 - v5: each transaction has an epoch of its own; the response has that of the next one (KIP-890)
"""

from kgateway.api import Context, Operation, Resource, api
from kgateway.messages.end_txn import EndTxnRequest, EndTxnResponse
from kgateway.transactions.coordinator import TransactionCoordinator
from kgateway.transactions.state import ProducerIdAndEpoch
from kgateway.wire.errors import ErrorCode


@api(
    EndTxnRequest,
    EndTxnResponse,
    versions="0-5",
    needs=Operation.WRITE.on(Resource.TRANSACTIONAL_ID),
    starts=(TransactionCoordinator,),
)
async def end_txn(request: EndTxnRequest, context: Context) -> EndTxnResponse:
    context.demand(Operation.WRITE, Resource.TRANSACTIONAL_ID, request.transactional_id)
    producer = ProducerIdAndEpoch(request.producer_id, request.producer_epoch)
    following = await context.service(TransactionCoordinator).end(
        request.transactional_id, producer, request.committed, context.version
    )
    return EndTxnResponse(
        throttle_time_ms=0, error_code=ErrorCode.NONE, producer_id=following.producer_id, producer_epoch=following.epoch
    )
