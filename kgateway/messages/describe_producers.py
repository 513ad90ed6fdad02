"""
DescribeProducers: lists the producers of a partition, to find hanging transactions (KIP-664).
"""

from kgateway.wire.schema import Message, Struct, v
from kgateway.wire.types import i16, i32, i64


class DescribeProducersRequest(Message, key=61, versions="0", flexible="0+"):
    """
    Sent to the leader of the partitions.
    """

    class Topic(Struct):
        name: str
        partition_indexes: list[i32]

    topics: list[Topic]


class DescribeProducersResponse(Message, key=61, versions="0", flexible="0+"):
    class Topic(Struct):
        class Partition(Struct):
            class ActiveProducer(Struct):
                producer_id: i64
                producer_epoch: i32  # i16 everywhere else
                last_sequence: i32 = v(default=-1)
                last_timestamp: i64 = v(default=-1)  # ms, -1: none
                coordinator_epoch: i32  # -1: no marker seen yet
                current_txn_start_offset: i64 = v(default=-1)  # -1: no open transaction

            partition_index: i32
            error_code: i16
            error_message: str | None = v(default=None)
            active_producers: list[ActiveProducer]

        name: str
        partitions: list[Partition]

    throttle_time_ms: i32
    topics: list[Topic]
