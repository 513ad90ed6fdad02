"""
Records of `__transaction_state`: what a transaction coordinator knows, one record a transactional id.
"""

from kgateway.wire.schema import Message, Struct, v
from kgateway.wire.types import i8, i16, i32, i64


class TransactionLogKey(Message, key=0, versions="0"):
    """
    Key of a record in __transaction_state, behind an i16 version: one transactional id.
    """

    transactional_id: str


class TransactionLogValue(Message, key=0, versions="0-1", flexible="1+"):
    """
    Value of a record in __transaction_state, behind an i16 version: the state of a transaction.

     - v1: flexible (KIP-915); tags: previous_producer_id, next_producer_*, client_transaction_version
    """

    class TransactionPartition(Struct):
        topic: str
        partition_ids: list[i32]

    producer_id: i64
    previous_producer_id: i64 = v("1+", default=-1, tag=0)  # -1: none
    next_producer_id: i64 = v("1+", default=-1, tag=1)  # already told the producer; -1: none
    producer_epoch: i16
    next_producer_epoch: i16 = v("1+", default=-1, tag=3)
    transaction_timeout_ms: i32
    transaction_status: i8  # 0 empty, 1 ongoing, 2/3 prepare, 4/5 complete commit/abort
    transaction_partitions: list[TransactionPartition] | None  # null: none
    transaction_last_update_timestamp_ms: i64
    transaction_start_timestamp_ms: i64  # -1: none begun
    client_transaction_version: i16 = v("1+", default=0, tag=2)  # 2: the epoch rises with every transaction (KIP-890)
