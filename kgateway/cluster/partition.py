"""
What goes into a partition and what comes out, beside the batches themselves.
"""

from enum import Enum, IntEnum
from typing import NamedTuple

from twisted.internet.defer import Deferred

from kgateway.wire.types import Buffer

EARLIEST_OFFSET = 0
NO_OFFSET = -1
NO_EPOCH = -1


class Origin(Enum):
    """
    Who writes: a client, who is checked; one of whom it was asked before whether the partition is part of the
    transaction; one whose records were judged before; one with both behind it; or a coordinator of ours, who may also
    write control batches.
    """

    CLIENT = "client"
    ADDED = "added"
    JUDGED = "judged"
    JOINED = "joined"
    COORDINATOR = "coordinator"


class Isolation(IntEnum):
    """
    How far a consumer reads: to the high watermark, or to the last stable offset.
    """

    READ_UNCOMMITTED = 0
    READ_COMMITTED = 1


class Appended(NamedTuple):
    """
    A batch has its offsets. `stored` and `safe` are `None` where that is so already, else they fire or fail when it is
    known: stored is what acks=1 waits for, safe what acks=all does.
    """

    base_offset: int
    log_append_time_ms: int  # -1: the producer's timestamps were kept
    log_start: int
    stored: Deferred[None] | None = None
    safe: Deferred[None] | None = None

    def leave(self, *unwanted: Deferred[None] | None) -> None:
        """
        Nobody waits for these: if they fail that is of no interest.
        """
        for waited in unwanted:
            if waited is not None:
                waited.addErrback(lambda _: None)


class Aborted(NamedTuple):
    """
    A transaction that was aborted, to a consumer that reads what is committed.
    """

    producer_id: int
    first_offset: int


class Read(NamedTuple):
    """
    Whole batches, the first of which may begin before the offset asked for, and where the log stood.
    """

    batches: list[Buffer]
    size: int
    high_watermark: int
    last_stable: int
    log_start: int
    aborted: list[Aborted] | None = None


class Found(NamedTuple):
    """
    An offset, the timestamp of its record, and the epoch it was written in.
    """

    offset: int
    timestamp: int
    leader_epoch: int


class EpochEnd(NamedTuple):
    """
    The largest epoch the log has that is not after the one asked for, and the offset at which it ends.
    """

    leader_epoch: int
    end_offset: int
