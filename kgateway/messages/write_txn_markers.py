"""
WriteTxnMarkers: has the leaders of partitions write commit and abort markers.

 - v1: flexible
 - v2: transaction_version (KIP-1228)
"""

from kgateway.wire.schema import Message, Struct, v
from kgateway.wire.types import i8, i16, i32, i64


class WriteTxnMarkersRequest(Message, key=27, versions="0-2", flexible="1+"):
    class Marker(Struct):
        class Topic(Struct):
            name: str
            partition_indexes: list[i32]

        producer_id: i64
        producer_epoch: i16
        transaction_result: bool  # true commit, false abort
        topics: list[Topic]
        coordinator_epoch: i32  # leader epoch of its __transaction_state partition
        transaction_version: i8 = v("2+")  # 2: every transaction has its own epoch (KIP-890)

    markers: list[Marker]


class WriteTxnMarkersResponse(Message, key=27, versions="0-2", flexible="1+"):
    class Marker(Struct):
        class Topic(Struct):
            class Partition(Struct):
                partition_index: i32
                error_code: i16

            name: str
            partitions: list[Partition]

        producer_id: i64
        topics: list[Topic]

    markers: list[Marker]
