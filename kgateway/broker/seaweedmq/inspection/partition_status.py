"""
The status of partitions, as far as it can be seen without leading them.

What is in files is read from the files. How much more a broker has in its memory is asked only if somebody
publishes: a broker that is asked about a partition which it has not loaded would begin to count it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from kgateway.broker.seaweedmq.files.partition_files import FilesEnd
from kgateway.broker.seaweedmq.inspection.read_only_cluster import ReadOnlyCluster
from kgateway.broker.seaweedmq.layout.topic_file import PartitionFolder
from kgateway.broker.seaweedmq.ledger.ledger import Ledger
from kgateway.broker.seaweedmq.ledger.snapshot import UnusableLedger
from kgateway.broker.seaweedmq.topics.broker_rpc import assignment_to
from kgateway.broker.seaweedmq.topics.catalog import StoredTopic
from kgateway.cluster.partition import EARLIEST_OFFSET
from kgateway.records.batch import read_batch
from kgateway.wire.errors import Malformed

_ACKS = "seaweedmq.acks"


@dataclass(frozen=True, slots=True)
class PartitionStatus:
    topic: str
    partition: int
    format: str
    acks: str | None  # if the topic sets it
    rows: int  # of its ledger, that are saved
    ledger_end: int  # Kafka's offset after them
    first_ns: int | None  # when the first message was published, or before
    last_ns: int | None
    start: int  # of the log
    flushed: int  # Kafka's offset before which all is in files
    held: int | None  # before which all is at least in the memory of its broker; `None` if nobody can tell
    messages_held: int  # in its memory, and in no file yet
    publishers: tuple[str, ...]

    @property
    def high_watermark(self) -> int | None:
        """
        The offset before which consumers can read, as far as it is known.
        """
        return self.flushed if self.acks == "flushed" else self.held


async def partition_statuses(cluster: ReadOnlyCluster, topics: Sequence[StoredTopic]) -> list[PartitionStatus]:
    found: list[PartitionStatus] = []
    for stored in topics:
        publishers = [each for each in await cluster.rpc.publishers(stored.name) if each.is_active]
        for index, partition in enumerate(stored.file.generations[-1].partitions):
            theirs = [each for each in publishers if each.partition.range_start == partition.part.start]
            found.append(await _partition_status(cluster, stored, index, tuple(each.publisher_name for each in theirs)))
    return found


async def _partition_status(
    cluster: ReadOnlyCluster, stored: StoredTopic, index: int, publishers: tuple[str, ...]
) -> PartitionStatus:
    partition_files, ledger = cluster.partition_files(stored, index), await _saved_ledger(cluster, stored, index)
    await partition_files.refresh()
    start = await partition_files.start()
    end = await partition_files.end(EARLIEST_OFFSET)
    times = ledger.rows.times if ledger else ()
    held, more = await _held(cluster, stored, partition_files.folders[-1], end) if publishers else (end.offset, 0)
    return PartitionStatus(
        stored.name,
        index,
        stored.file.format.name,
        stored.file.configs.get(_ACKS),
        len(times),
        ledger.end if ledger else EARLIEST_OFFSET,
        times[0] if times else None,
        times[-1] if times else None,
        max(start or EARLIEST_OFFSET, ledger.start if ledger else EARLIEST_OFFSET),
        end.offset,
        held,
        more,
        publishers,
    )


async def _saved_ledger(cluster: ReadOnlyCluster, stored: StoredTopic, index: int) -> Ledger | None:
    try:
        return await cluster.saved_ledger(stored, index)
    except UnusableLedger:
        return None  # `verify` says why


async def _held(
    cluster: ReadOnlyCluster, stored: StoredTopic, folder: PartitionFolder, end: FilesEnd
) -> tuple[int | None, int]:
    """
    The end of what the broker has in memory, and how many messages of that are in no file.
    """
    assignment = assignment_to(folder, await cluster.rpc.assignments(stored.name))
    next_message = await cluster.rpc.next_offset(stored.name, assignment)
    more = max(next_message - end.next_message, 0)
    if not (more and stored.file.format.batched):
        return end.offset + more, more
    found = await cluster.rpc.fetch(stored.name, assignment, next_message - 1)
    try:
        return (read_batch(found[-1].value).header.last_offset + 1 if found else None), more
    except Malformed:
        return None, more
