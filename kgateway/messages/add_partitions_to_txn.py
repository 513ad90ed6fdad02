"""
AddPartitionsToTxn: registers the partitions that a transaction writes to.

 - v1: over quota, the answer comes before the delay (KIP-219)
 - v2: PRODUCER_FENCED may be answered (KIP-588)
 - v3: flexible; the last version clients send
 - v4: sent by brokers: several transactions at a time, verify_only, error_code (KIP-890)
 - v5: TRANSACTION_ABORTABLE may be answered (KIP-890)
"""

from kgateway.wire.schema import Message, Struct, v
from kgateway.wire.types import i16, i32, i64


class Topic(Struct):
    name: str
    partitions: list[i32]


class PartitionResult(Struct):
    partition_index: i32
    partition_error_code: i16


class TopicResult(Struct):
    name: str
    results_by_partition: list[PartitionResult]


class AddPartitionsToTxnRequest(Message, key=24, versions="0-5", flexible="3+"):
    """
    The partitions to add to one transaction, or from v4 on to several.
    """

    class Transaction(Struct):
        transactional_id: str
        producer_id: i64
        producer_epoch: i16
        verify_only: bool = v(default=False)  # only check that they were added before
        topics: list[Topic]

    transactions: list[Transaction] = v("4+")
    v3_and_below_transactional_id: str = v("0-3")
    v3_and_below_producer_id: i64 = v("0-3")
    v3_and_below_producer_epoch: i16 = v("0-3")
    v3_and_below_topics: list[Topic] = v("0-3")


class AddPartitionsToTxnResponse(Message, key=24, versions="0-5", flexible="3+"):
    class ResultsByTransaction(Struct):
        transactional_id: str
        topic_results: list[TopicResult]

    throttle_time_ms: i32
    error_code: i16 = v("4+")
    results_by_transaction: list[ResultsByTransaction] = v("4+")
    results_by_topic_v3_and_below: list[TopicResult] = v("0-3")
