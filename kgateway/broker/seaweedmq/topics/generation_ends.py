"""
Finds where partitions that another program has recreated ended, and with which message the new ones begin.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from kgateway.broker.deferreds import gather
from kgateway.broker.seaweed.cluster import SeaweedCluster
from kgateway.broker.seaweed.protos.messaging_pb2 import BrokerPartitionAssignment
from kgateway.broker.seaweed.protos.schema_pb2 import Partition
from kgateway.broker.seaweedmq.files.log_files import LogFiles
from kgateway.broker.seaweedmq.files.partition_files import PartitionFiles
from kgateway.broker.seaweedmq.files.range_reader import RangeCache
from kgateway.broker.seaweedmq.layout.topic_file import PartitionFolder, TopicFile, folders_of
from kgateway.broker.seaweedmq.layout.topic_paths import RING_SIZE, RingRange, partition_folder
from kgateway.broker.seaweedmq.topics.broker_rpc import FLUSHED_S, BrokerRpc
from kgateway.cluster.partition import EARLIEST_OFFSET

_LOOK_S = 0.1
_LOOKS = int(FLUSHED_S / _LOOK_S)
_NO_CLOCK: Any = None  # nothing is prefetched here


class Newest(NamedTuple):
    unix_time_ns: int
    parts: Sequence[RingRange]  # by Kafka's index


class GenerationEnds:
    """
    The ends as files have them, whatever brokers have in memory.
    """

    def __init__(self, seaweed: SeaweedCluster, namespace: str) -> None:
        self._seaweed = seaweed
        self._namespace = namespace

    async def ends(self, name: str, file: TopicFile, newest: Newest) -> Sequence[int]:
        """
        The end offset of each partition that the topic ever had, before the newest generation.
        """
        return [await self._end(name, file, index) for index in range(file.partition_count)]

    async def firsts(self, name: str, file: TopicFile, newest: Newest) -> Sequence[int]:
        """
        The offset of SeaweedMQ with which each partition of the newest generation begins.
        """
        return [await self._first_in_files(name, file, newest, part) or 0 for part in newest.parts]

    async def _end(self, name: str, file: TopicFile, index: int) -> int:
        partition_files = self._partition_files(name, file, index)
        await partition_files.refresh()
        newest = partition_files.folders[-1]
        return (await partition_files.end(newest.first_message + newest.shift)).offset

    async def _first_in_files(self, name: str, file: TopicFile, newest: Newest, part: RingRange) -> int | None:
        path = partition_folder(name, newest.unix_time_ns, part, self._namespace)
        if any(folder.path == path for folder in self._folders(name, file, part)):
            return await self._counted_before(name, file, part)  # made within the same second
        files = await self._files(file, [PartitionFolder(path, 0, 0, newest.unix_time_ns, part)])
        return await files.first_message(files.listed[0]) if files.listed else None

    async def _counted_before(self, name: str, file: TopicFile, part: RingRange) -> int:
        """
        How far the broker has counted, as files say, in the last generation with this range.
        """
        files = await self._files(file, self._folders(name, file, part))
        return (await files.last(files.listed[-1])).message_offset + 1 if files.listed else 0

    def _folders(self, name: str, file: TopicFile, part: RingRange) -> list[PartitionFolder]:
        indexes = range(file.partition_count)
        found = [folder for index in indexes for folder in folders_of(file, name, index, self._namespace)]
        return sorted([folder for folder in found if folder.part == part], key=lambda folder: folder.unix_time_ns)

    async def _files(self, file: TopicFile, folders: Sequence[PartitionFolder]) -> LogFiles:
        files = LogFiles(self._seaweed, file.format)
        await files.refresh(folders)
        return files

    def _partition_files(self, name: str, file: TopicFile, index: int) -> PartitionFiles:
        folders = folders_of(file, name, index, self._namespace)
        return PartitionFiles(self._seaweed, folders, file.format, RangeCache(0), _NO_CLOCK)


class FlushedGenerationEnds(GenerationEnds):
    """
    The ends once brokers have flushed what they had in memory.
    """

    def __init__(self, seaweed: SeaweedCluster, namespace: str, rpc: BrokerRpc) -> None:
        super().__init__(seaweed, namespace)
        self._rpc = rpc

    async def ends(self, name: str, file: TopicFile, newest: Newest) -> Sequence[int]:
        if file.generations:
            # If the range was recreated, brokers count something else.
            gone = [
                index for index, (part, *_) in enumerate(file.generations[-1].partitions) if part not in newest.parts
            ]
            leader = (await self._rpc.assignments(name))[0].leader_broker
            await gather([self._flushed(name, file, index, leader) for index in gone])
        return await super().ends(name, file, newest)

    async def firsts(self, name: str, file: TopicFile, newest: Newest) -> Sequence[int]:
        leaders = {
            (each.partition.range_start, each.partition.range_stop): each
            for each in await self._rpc.assignments(name)
            if each.partition.unix_time_ns == newest.unix_time_ns
        }
        return await gather([self._first(name, file, newest, part, leaders.get(part)) for part in newest.parts])

    async def _flushed(self, name: str, file: TopicFile, index: int, leader: str) -> None:
        """
        Wait until files have everything that was published to a partition which SeaweedMQ has no more.
        """
        partition_files = self._partition_files(name, file, index)
        part, unix_time_ns = partition_files.folders[-1].part, partition_files.folders[-1].unix_time_ns
        gone = Partition(ring_size=RING_SIZE, range_start=part.start, range_stop=part.stop, unix_time_ns=unix_time_ns)
        last = await self._rpc.next_offset(name, BrokerPartitionAssignment(partition=gone, leader_broker=leader))
        for _ in range(_LOOKS):
            await partition_files.refresh()
            if (await partition_files.end(EARLIEST_OFFSET)).next_message >= last:
                break
            await self._seaweed.retries.wait(_LOOK_S)

    async def _first(
        self, name: str, file: TopicFile, newest: Newest, part: RingRange, assignment: BrokerPartitionAssignment | None
    ) -> int:
        """
        A broker that had a partition of this range counts on; what was published since may be in no file yet.
        """
        first = await self._first_in_files(name, file, newest, part)
        if first is not None or assignment is None:
            return first or 0
        counted = await self._rpc.next_offset(name, assignment)
        if counted == await self._counted_before(name, file, part):
            return counted
        for _ in range(_LOOKS):
            first = await self._first_in_files(name, file, newest, part)
            if first is not None:
                return first
            await self._seaweed.retries.wait(_LOOK_S)
        return counted
