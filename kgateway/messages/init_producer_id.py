"""
InitProducerId: allocates a producer id and epoch, and fences the previous producer.

 - v1: over quota, the answer comes before the delay (KIP-219)
 - v2: flexible
 - v3: producer_id and producer_epoch: go on with a new epoch after an error (KIP-360)
 - v4: PRODUCER_FENCED may be answered (KIP-588)
 - v5: TRANSACTION_ABORTABLE may be answered (KIP-890)
 - v6: enable_2pc, keep_prepared_txn, ongoing_txn_*; unstable in 4.3 (KIP-939)
"""

from kgateway.wire.schema import Message, v
from kgateway.wire.types import i16, i32, i64


class InitProducerIdRequest(Message, key=22, versions="0-6", flexible="2+"):
    """
    A producer asks for an id, for its transactions or only for idempotence.
    """

    transactional_id: str | None  # null: idempotence without transactions
    transaction_timeout_ms: i32  # the coordinator aborts a transaction open for longer
    producer_id: i64 = v("3+", default=-1)  # -1 from a producer that has none yet
    producer_epoch: i16 = v("3+", default=-1)
    enable_2pc: bool = v("6+")
    keep_prepared_txn: bool = v("6+")  # do not abort the transaction left open


class InitProducerIdResponse(Message, key=22, versions="0-6", flexible="2+"):
    throttle_time_ms: i32
    error_code: i16
    producer_id: i64 = v(default=-1)
    producer_epoch: i16
    ongoing_txn_producer_id: i64 = v("6+", default=-1)  # -1: no transaction was left open
    ongoing_txn_producer_epoch: i16 = v("6+", default=-1)
