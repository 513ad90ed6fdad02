"""
What classic consumers send inside JoinGroup and SyncGroup: bytes to the broker, tables for code that reads them.
"""

from kgateway.wire.schema import Message, Struct, v
from kgateway.wire.types import i32


class ConsumerProtocolSubscription(Message, versions="0-3"):
    """
    What a classic consumer tells its group's leader on joining, behind an i16 version.

     - v1: owned_partitions, for cooperative rebalancing (KIP-429)
     - v2: generation_id, to tell stale owned_partitions (KIP-792)
     - v3: rack_id (KIP-881)
    """

    class PartitionBase(Struct):
        topic: str
        partitions: list[i32]

    topics: list[str]
    user_data: bytes | None = v(default=None)  # the assignor's own
    owned_partitions: list[PartitionBase] = v("1+")
    generation_id: i32 = v("2+", default=-1)  # of owned_partitions; -1: unknown
    rack_id: str | None = v("3+", default=None)


class ConsumerProtocolAssignment(Message, versions="0-3"):
    """
    What the leader gives a classic consumer, behind an i16 version; all versions have one layout.
    """

    class AssignedPartition(Struct):
        topic: str
        partitions: list[i32]

    assigned_partitions: list[AssignedPartition]
    user_data: bytes | None = v(default=None)  # the assignor's own
