"""
DescribeTopicPartitions: describes the partitions of topics, page by page (KIP-966).
"""

from kgateway.messages.operations import UNKNOWN_OPERATIONS
from kgateway.wire.schema import Message, Struct, v
from kgateway.wire.types import i16, i32
from kgateway.wire.uuids import Uuid


class DescribeTopicPartitionsRequest(Message, key=75, versions="0", flexible="0+"):
    class Topic(Struct):
        name: str

    class Cursor(Struct):
        topic_name: str
        partition_index: i32

    topics: list[Topic]  # empty: all
    response_partition_limit: i32 = v(default=2000)  # the broker may have a lower one
    cursor: Cursor | None = v(default=None)  # null: from the start


class DescribeTopicPartitionsResponse(Message, key=75, versions="0", flexible="0+"):
    """
    One page of partitions in order of topic name, and where the next begins.
    """

    class Topic(Struct):
        class Partition(Struct):
            error_code: i16
            partition_index: i32
            leader_id: i32
            leader_epoch: i32 = v(default=-1)
            replica_nodes: list[i32]
            isr_nodes: list[i32]
            # out of the ISR, yet with all committed records
            eligible_leader_replicas: list[i32] | None = v(default=None)
            last_known_elr: list[i32] | None = v(default=None)  # were eligible until an unclean shutdown
            offline_replicas: list[i32]

        error_code: i16
        name: str | None
        topic_id: Uuid
        is_internal: bool = v(default=False)
        partitions: list[Partition]
        topic_authorized_operations: i32 = v(default=UNKNOWN_OPERATIONS)

    class NextCursor(Struct):
        topic_name: str
        partition_index: i32

    throttle_time_ms: i32
    topics: list[Topic]
    next_cursor: NextCursor | None = v(default=None)  # null: this was the last page
