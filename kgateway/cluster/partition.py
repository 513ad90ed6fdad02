"""
The values that go into a partition and come out of it, beside the batches themselves.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import NamedTuple

from twisted.internet.defer import Deferred

from kgateway.topic_partition import PartitionId
from kgateway.wire.types import Buffer

EARLIEST_OFFSET = 0
NO_OFFSET = -1
NO_EPOCH = -1
UNKNOWN_BYTES = -1


class Origin(Enum):
    """
    Who appends, and what was checked before: a coordinator of ours, which may also write control batches, or a client.
    ENROLLED: the coordinator has agreed that the partition is part of the transaction. VALIDATED: the records were
    checked.
    """

    CLIENT = "client"
    ENROLLED = "enrolled"
    VALIDATED = "validated"
    ENROLLED_AND_VALIDATED = "enrolled and validated"
    COORDINATOR = "coordinator"


class Isolation(IntEnum):
    """
    How far a consumer reads: to the high watermark, or to the last stable offset.
    """

    READ_UNCOMMITTED = 0
    READ_COMMITTED = 1


@dataclass(slots=True)  # not frozen, and no NamedTuple: those take twice as long to make, and every batch makes one
class Appended:
    """
    The batch has its offsets. `stored` is what acks=1 waits for, `committed` what acks=all waits for; each is `None` if
    that is so already.
    """

    base_offset: int
    log_append_time_ms: int  # -1: the producer's timestamps were kept
    log_start: int
    stored: Deferred[None] | None = None
    committed: Deferred[None] | None = None

    def ignore(self, *unwanted: Deferred[None] | None) -> None:
        """
        Drop the failures of these: nobody waits for them.
        """
        for deferred in unwanted:
            if deferred is not None:
                deferred.addErrback(lambda _: None)


class Aborted(NamedTuple):
    producer_id: int
    first_offset: int


@dataclass(slots=True)
class Read:
    """
    Whole batches, the first of which may begin before the requested offset, and the offsets of the log at that moment.
    """

    batches: list[Buffer]
    size: int
    high_watermark: int
    last_stable: int
    log_start: int
    aborted: list[Aborted] | None = None


class TimestampAndOffset(NamedTuple):
    """
    An offset, the timestamp of its record, and the leader epoch it was written in.
    """

    offset: int
    timestamp: int
    leader_epoch: int


class EpochEnd(NamedTuple):
    """
    The largest epoch of the log that is not after the requested one, and the offset at which it ends.
    """

    leader_epoch: int
    end_offset: int


class DiskUsage(NamedTuple):
    """
    The bytes that partitions take, and the room where they are. A partition that has no folder is left out.
    """

    sizes: Mapping[PartitionId, int]
    total_bytes: int = UNKNOWN_BYTES
    usable_bytes: int = UNKNOWN_BYTES
