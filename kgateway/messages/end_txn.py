"""
EndTxn: commits or aborts a transaction.

 - v1: over quota, the answer comes before the delay (KIP-219)
 - v2: PRODUCER_FENCED may be answered (KIP-588)
 - v3: flexible
 - v4: TRANSACTION_ABORTABLE may be answered (KIP-890)
 - v5: each transaction gets a new epoch: producer_id and producer_epoch come back (KIP-890)
"""

from kgateway.wire.schema import Message, v
from kgateway.wire.types import i16, i32, i64


class EndTxnRequest(Message, key=26, versions="0-5", flexible="3+"):
    transactional_id: str
    producer_id: i64
    producer_epoch: i16
    committed: bool  # false: abort


class EndTxnResponse(Message, key=26, versions="0-5", flexible="3+"):
    """
    Sent once the outcome is settled; the markers may still be on their way.
    """

    throttle_time_ms: i32
    error_code: i16
    producer_id: i64 = v("5+", default=-1)  # for the next transaction; -1 with an error
    producer_epoch: i16 = v("5+", default=-1)  # for the next transaction; -1 with an error
