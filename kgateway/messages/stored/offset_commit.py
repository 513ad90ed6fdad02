"""
Records of `__consumer_offsets`: committed offsets.
"""

from kgateway.wire.schema import Message, v
from kgateway.wire.types import i32, i64
from kgateway.wire.uuids import Uuid


class LegacyOffsetCommitKey(Message, key=0, versions="0"):
    """
    Key of record type 0: a committed offset, as early brokers wrote it.
    """

    group: str
    topic: str
    partition: i32


class LegacyOffsetCommitValue(Message, key=0, versions="0"):
    """
    Value of record type 0: a committed offset, as early brokers wrote it.
    """

    offset: i64
    metadata: str
    commit_timestamp: i64  # ms


class OffsetCommitKey(Message, key=1, versions="0"):
    """
    Key of record type 1: one partition of one group.
    """

    group: str
    topic: str
    partition: i32


class OffsetCommitValue(Message, key=1, versions="0-4", flexible="4+"):
    """
    Value of record type 1: the offset committed for a partition.

     - v1: expire_timestamp
     - v2: expire_timestamp is gone, the group's state decides (KIP-211)
     - v3: leader_epoch (KIP-320)
     - v4: flexible (KIP-915); topic_id, a tag
    """

    offset: i64
    leader_epoch: i32 = v("3+", default=-1)  # of the last record consumed; -1: unknown
    metadata: str
    commit_timestamp: i64  # ms
    expire_timestamp: i64 = v("1", default=-1)  # ms, -1: by the broker's retention
    topic_id: Uuid = v("4+", tag=0)  # zero: unknown
