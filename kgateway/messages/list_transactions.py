"""
ListTransactions: lists the transactional ids that this broker coordinates (KIP-664).

 - v1: duration_filter (KIP-994)
 - v2: transactional_id_pattern; a bad one answers INVALID_REGULAR_EXPRESSION (KIP-1152)
"""

from kgateway.wire.schema import Message, Struct, v
from kgateway.wire.types import i16, i32, i64


class ListTransactionsRequest(Message, key=66, versions="0-2", flexible="0+"):
    """
    Asks for the transactions that pass all filters.
    """

    state_filters: list[str]  # empty: all
    producer_id_filters: list[i64]  # empty: all
    duration_filter: i64 = v("1+", default=-1)  # ms, open for longer than this; negative: all
    transactional_id_pattern: str | None = v("2+", default=None)  # a regex; null or empty: all


class ListTransactionsResponse(Message, key=66, versions="0-2", flexible="0+"):
    class TransactionState(Struct):
        transactional_id: str
        producer_id: i64
        transaction_state: str

    throttle_time_ms: i32
    error_code: i16
    unknown_state_filters: list[str]  # names in state_filters that are no state
    transaction_states: list[TransactionState]
