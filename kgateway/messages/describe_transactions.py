"""
DescribeTransactions: describes transactional ids and their current transactions (KIP-664).
"""

from kgateway.wire.schema import Message, Struct
from kgateway.wire.types import i16, i32, i64


class DescribeTransactionsRequest(Message, key=65, versions="0", flexible="0+"):
    """
    Sent to the coordinator of the transactional ids.
    """

    transactional_ids: list[str]  # empty: none


class DescribeTransactionsResponse(Message, key=65, versions="0", flexible="0+"):
    class TransactionState(Struct):
        class Topic(Struct):
            topic: str
            partitions: list[i32]

        error_code: i16
        transactional_id: str
        transaction_state: str  # a name, such as Ongoing
        transaction_timeout_ms: i32
        transaction_start_time_ms: i64  # -1: none begun
        producer_id: i64
        producer_epoch: i16
        topics: list[Topic]  # when ending: those still without a marker

    throttle_time_ms: i32
    transaction_states: list[TransactionState]
