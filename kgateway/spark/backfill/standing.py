"""
How much of a backfill is in a log, as the log itself tells.

The rows for a partition are numbered, and a row's number is its sequence number, of a producer id that the backfill
keeps for all its life. So the last batch of that producer says which row is next; and a server that is sent a batch out
of its order, by a try that was thought dead, refuses it.
"""

from dataclasses import dataclass

from kgateway.client.cluster import Cluster
from kgateway.client.fetching import Fetching
from kgateway.client.offsets import Extent, Partition, extents
from kgateway.spark.failures import TopicGone, Unreadable

SEQUENCES = 1 << 31  # after the largest comes 0
_FIRST_LOOK = 1_000  # offsets before the end; others may have written there
_FURTHER = 8
_WAIT_MS = 500


@dataclass(frozen=True, slots=True)
class Standing:
    """
    How many rows are there, and the offset behind the last of them.
    """

    rows: int
    end: int


def standing(cluster: Cluster, partition: Partition, start: int, producer_id: int) -> Standing:
    """
    What is there of a backfill that began at this offset: it is looked for from the end backwards.
    """
    extent = cluster.kept_up(lambda: extents(cluster, [partition])).get(partition)
    if extent is None:
        raise TopicGone(f"{partition} is there no more")
    first, low, span = max(start, extent.start), extent.end, _FIRST_LOOK
    while low > first:
        high, low = low, max(low - span, first)
        found = _last_between(cluster, partition, producer_id, Extent(low, high), start)
        if found:
            return found
        span *= _FURTHER
    if extent.start > start:
        raise Unreadable(
            f"{partition} begins with offset {extent.start} now, and the backfill began at {start}: rows may have "
            "gone, by retention say. Begin anew, with another --state"
        )
    return Standing(0, start)


def _last_between(
    cluster: Cluster, partition: Partition, producer_id: int, where: Extent, start: int
) -> Standing | None:
    fetching = Fetching(cluster, {partition: where.start})
    last: Standing | None = None
    while fetching.positions[partition] < where.end:
        [fetched] = fetching.poll(_WAIT_MS)
        if not fetched.batches:
            break
        for batch in fetched.batches:
            header = batch.header
            if header.producer_id == producer_id and header.last_offset >= start:
                sequence = (header.base_sequence + header.last_offset_delta) % SEQUENCES
                last = Standing(_row_of(sequence, header.last_offset - start) + 1, header.last_offset + 1)
        fetching.positions[partition] = max(fetched.batches[-1].header.last_offset + 1, where.start)
    return last


def _row_of(sequence: int, furthest: int) -> int:
    """
    The row with this sequence number, of which there are some when there are very many rows: the last that fits.
    """
    return sequence + max(furthest - sequence, 0) // SEQUENCES * SEQUENCES
