"""
AddOffsetsToTxn: registers the group whose offsets a transaction will commit.

 - v1: over quota, the answer comes before the delay (KIP-219)
 - v2: PRODUCER_FENCED may be answered (KIP-588)
 - v3: flexible
 - v4: TRANSACTION_ABORTABLE may be answered (KIP-890)
"""

from kgateway.wire.schema import Message
from kgateway.wire.types import i16, i32, i64


class AddOffsetsToTxnRequest(Message, key=25, versions="0-4", flexible="3+"):
    transactional_id: str
    producer_id: i64
    producer_epoch: i16
    group_id: str  # adds its partition of __consumer_offsets


class AddOffsetsToTxnResponse(Message, key=25, versions="0-4", flexible="3+"):
    throttle_time_ms: i32
    error_code: i16
