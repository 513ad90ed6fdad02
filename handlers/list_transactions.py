"""
ListTransactions: the transactional ids that this gateway coordinates (KIP-664).

 - v1: duration_filter: transactions that are open for longer than this (KIP-994)
 - v2: transactional_id_pattern (KIP-1152)
"""

from kgateway.api import Context, Operation, Resource, api
from kgateway.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from kgateway.transactions.coordinator import TransactionCoordinator
from kgateway.transactions.transaction_filter import TransactionFilter
from kgateway.wire.errors import ErrorCode

Answer = ListTransactionsResponse.TransactionState


@api(
    ListTransactionsRequest,
    ListTransactionsResponse,
    versions="0-2",
    needs=Operation.DESCRIBE.on(Resource.TRANSACTIONAL_ID),
)
async def list_transactions(request: ListTransactionsRequest, context: Context) -> ListTransactionsResponse:
    wanted = TransactionFilter(
        request.state_filters, request.producer_id_filters, request.duration_filter, request.transactional_id_pattern
    )

    def may_describe(transactional_id: str) -> bool:
        return context.allowed(Operation.DESCRIBE, Resource.TRANSACTIONAL_ID, transactional_id)

    answers = [
        Answer(
            transactional_id=found.transactional_id, producer_id=found.producer_id, transaction_state=found.state.label
        )
        for found in await context.service(TransactionCoordinator).list(wanted, may_describe)
    ]
    return ListTransactionsResponse(
        throttle_time_ms=0,
        error_code=ErrorCode.NONE,
        unknown_state_filters=wanted.unknown_states,
        transaction_states=answers,
    )
