"""
Opens partitions: finds where their logs begin and end, their leader epochs and producers, and makes their parts.
"""

from collections.abc import Callable
from functools import partial

from kgateway.broker.partition.leader_epochs import LeaderEpochs
from kgateway.broker.partition.producer_state import ProducerTable
from kgateway.broker.seaweed.protos.filer_pb2 import Entry
from kgateway.broker.seaweedmq.files.partition_files import FilesEnd, PartitionFiles
from kgateway.broker.seaweedmq.files.range_reader import RangeCache
from kgateway.broker.seaweedmq.gateway_runtime import GatewayRuntime
from kgateway.broker.seaweedmq.layout.kafka_errors import NOT_LEADER
from kgateway.broker.seaweedmq.layout.topic_file import folders_of
from kgateway.broker.seaweedmq.layout.topic_paths import side_folder
from kgateway.broker.seaweedmq.partitions.log_end import first_log_end
from kgateway.broker.seaweedmq.partitions.partition import SeaweedMQPartition
from kgateway.broker.seaweedmq.partitions.partition_context import InitialState, PartitionContext
from kgateway.broker.seaweedmq.partitions.partition_ledger import PartitionLedger
from kgateway.broker.seaweedmq.partitions.predecessor_streams import PredecessorStreams
from kgateway.broker.seaweedmq.partitions.side_files import FilerSideFiles
from kgateway.broker.seaweedmq.publishing.recent_batches import RecentBatches
from kgateway.broker.seaweedmq.tail.tail_pace import TailPace
from kgateway.broker.seaweedmq.topics.catalog import StoredTopic, TopicCatalog
from kgateway.cluster.partition import EARLIEST_OFFSET
from kgateway.cluster.view import Topic
from kgateway.topic_partition import PartitionId

_DECODED_BYTES = 32 << 20  # of decoded ranges, for all partitions; prefetching may use half, enough for four ranges

# Bytes for all partitions, and the least for one.
_RECENT = 40 << 20, 1 << 16  # recent batches, if they must be in memory
_UNFLUSHED = 256 << 20, 4 << 20  # in no file
_WINDOW = 32 << 20, 1 << 20  # on their way to brokers


class PartitionFactory:
    """
    Makes the partitions of one gateway, and passes on what the filer's feed says of their files.
    """

    def __init__(self, gateway: GatewayRuntime, topics: TopicCatalog, check_lease: Callable[[], None]) -> None:
        self._gateway = gateway
        self._topics = topics
        self._check_lease = check_lease
        self._decoded = RangeCache(_DECODED_BYTES)
        self._tail_pace = TailPace()
        self._predecessor = PredecessorStreams(topics.rpc, gateway.reactor)
        self._by_folder: dict[str, SeaweedMQPartition] = {}

    def fresh(self, topic: Topic, stored: StoredTopic, index: int) -> SeaweedMQPartition:
        epoch = topic.partitions[index].leader_epoch
        context = self._context(stored, index, epoch)
        initial = _initial_state_of_new(context, epoch, self._gateway.producer_expiry_ms)
        return self._partition(topic, index, context, initial)

    async def existing(self, topic: Topic, stored: StoredTopic, index: int) -> SeaweedMQPartition:
        epoch = topic.partitions[index].leader_epoch
        context = self._context(stored, index, epoch)
        await context.ledger.load()
        if not context.is_removed:
            await self._predecessor.until_gone(stored.name, index, context.assignment)
        expiry_ms, now_ms = self._gateway.producer_expiry_ms, self._gateway.now_ms()
        initial = await _read_initial_state(context, epoch, expiry_ms, now_ms)
        partition = self._partition(topic, index, context, initial)
        if context.is_foreign:  # consumers may have got what is in no file
            try:
                await partition.follow_others()
            except BaseException:
                partition.lose(NOT_LEADER)
                raise
        return partition

    def partition_files(self, stored: StoredTopic, index: int) -> PartitionFiles:
        folders = folders_of(stored.file, stored.name, index, self._topics.namespace)
        return PartitionFiles(self._gateway.seaweed, folders, stored.file.format, self._decoded, self._gateway.reactor)

    def move(self, partition: SeaweedMQPartition, stored: StoredTopic) -> None:
        """
        Move a partition to the folder that SeaweedMQ has made for it.
        """
        self._forget(partition)
        folders = folders_of(stored.file, stored.name, partition.index, self._topics.namespace)
        partition.move(folders, is_removed=partition.index >= stored.file.assigned_count)
        self._by_folder[folders[-1].path] = partition

    def _forget(self, partition: SeaweedMQPartition) -> None:
        for folder in [folder for folder, known in self._by_folder.items() if known is partition]:
            del self._by_folder[folder]

    def forget(self, topic: Topic) -> None:
        self._by_folder = {folder: each for folder, each in self._by_folder.items() if each.topic.id != topic.id}

    def file_grown(self, folder: str, entry: Entry) -> None:
        """
        Pass on that a file in a folder has grown.
        """
        partition = self._by_folder.get(folder)
        if partition:
            partition.file_grown(entry)

    def _context(self, stored: StoredTopic, index: int, epoch: int) -> PartitionContext:
        gateway, files, message_format = self._gateway, self.partition_files(stored, index), stored.file.format
        folder = side_folder(stored.name, index, self._topics.namespace)
        side_files = FilerSideFiles(gateway.seaweed, folder, self._check_lease)
        ledger = PartitionLedger(
            PartitionId(stored.file.id, index),
            f"{stored.name}-{index}",
            epoch,
            files,
            message_format,
            side_files,
            gateway.reactor,
            gateway.ledger_interval_ms / 1000,
        )
        return PartitionContext(
            stored.name,
            index,
            files,
            message_format,
            gateway.seaweed,
            self._topics.rpc,
            gateway.reactor,
            gateway.client,
            self._check_lease,
            side_files,
            stored.file.is_foreign,
            index >= stored.file.assigned_count,
            ledger,
        )

    def _partition(
        self, topic: Topic, index: int, context: PartitionContext, initial: InitialState
    ) -> SeaweedMQPartition:
        memory_max, unflushed_max, window = (partial(self._share, *limits) for limits in (_RECENT, _UNFLUSHED, _WINDOW))
        recent = RecentBatches(self._gateway.spool, memory_max, initial.end.offset)
        partition = SeaweedMQPartition(
            topic, index, self._gateway.now_ms, initial, context, recent, unflushed_max, window, self._tail_pace
        )
        self._by_folder[context.files.folders[-1].path] = partition
        context.ledger.open(initial.log_start, initial.end, initial.epochs)
        return partition

    def _share(self, total: int, least: int) -> int:
        return max(total // max(len(self._by_folder), 1), least)


async def _read_initial_state(
    context: PartitionContext, epoch: int, producer_expiry_ms: int, now_ms: int
) -> InitialState:
    start, end = await _start_and_end(context, await first_log_end(context))
    epochs = await context.side_files.epochs()
    if epochs.assign(epoch, end.offset):
        await context.side_files.store_epochs(epochs)
    producers = ProducerTable(producer_expiry_ms)
    await _read_producers(context, producers, start, end.offset, now_ms)
    return InitialState(start, end, epochs, producers)


def _initial_state_of_new(context: PartitionContext, epoch: int, producer_expiry_ms: int) -> InitialState:
    epochs = LeaderEpochs()
    epochs.assign(epoch, EARLIEST_OFFSET)
    newest = context.files.folders[-1]
    end = FilesEnd(EARLIEST_OFFSET, newest.first_message)
    return InitialState(EARLIEST_OFFSET, end, epochs, ProducerTable(producer_expiry_ms))


async def _start_and_end(context: PartitionContext, end: FilesEnd) -> tuple[int, FilesEnd]:
    """
    The first offset that is there and not deleted; and the end, which is not before it. Records that were deleted
    before they were in files may be lost. If messages carry their Kafka offset, it is never given again: the end moves
    up to the log start. If not, the log start moves down to the end.
    """
    first = await context.files.start()
    deleted = await context.side_files.log_start()
    if deleted > end.offset and context.format.numbered:
        end = end._replace(offset=deleted)
    elif deleted > end.offset:
        await context.side_files.store_log_start(end.offset)
    return end.offset if first is None else min(max(first, deleted), end.offset), end


async def _read_producers(
    context: PartitionContext, producers: ProducerTable, start: int, end: int, now_ms: int
) -> None:
    """
    Read the producer state that was stored last, and what the log says after it; messages without offsets say nothing
    of producers.
    """
    if not context.format.numbered:
        return
    kept = await context.side_files.read_producers(producers, end, now_ms)
    for header in await context.files.producers(max(start, kept), end):
        producers.remember(header, header.base_offset, now_ms)
