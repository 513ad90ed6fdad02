"""
Where the partitions of a topic ended that SeaweedMQ has made anew, and with which message each begins that takes their
place: as files say, and once what brokers had in memory is in files.
"""

from collections.abc import Collection, Sequence
from typing import Any

from kgateway.broker.seaweed.protos.messaging_pb2 import BrokerPartitionAssignment
from kgateway.broker.seaweed.protos.schema_pb2 import Partition
from kgateway.broker.seaweed.seaweed import Seaweed
from kgateway.broker.seaweed.together import together
from kgateway.broker.seaweedmq.decoded_files import DecodedFiles
from kgateway.broker.seaweedmq.folders import Folder, folders_of
from kgateway.broker.seaweedmq.generations import Made
from kgateway.broker.seaweedmq.history import History
from kgateway.broker.seaweedmq.kept_topic import KeptTopic
from kgateway.broker.seaweedmq.layout import RING_SIZE, Range, partition_folder
from kgateway.broker.seaweedmq.log_files import LogFiles
from kgateway.broker.seaweedmq.looking import FLUSHED_S
from kgateway.broker.seaweedmq.messaging import Messaging
from kgateway.cluster.partition import EARLIEST_OFFSET

_LOOK_S = 0.1
_LOOKS = int(FLUSHED_S / _LOOK_S)
_NO_CLOCK: Any = None  # nothing is read ahead here


class Ends:
    """
    By files alone.
    """

    def __init__(self, seaweed: Seaweed, namespace: str) -> None:
        self._seaweed = seaweed
        self._namespace = namespace

    async def ends(self, name: str, kept: KeptTopic, later: Collection[Range]) -> Sequence[int]:
        """
        Kafka's offsets behind all that is kept, of all partitions the topic ever had; `later` ranges were made since.
        """
        return [await self._end(name, kept, index) for index in range(kept.most_partitions)]

    async def firsts(self, name: str, kept: KeptTopic, made: Made) -> Sequence[int]:
        """
        With which message each partition begins that was made after all that is kept.
        """
        return [await self._first_in_files(name, kept, made, part) or 0 for part in made.parts]

    async def _end(self, name: str, kept: KeptTopic, index: int) -> int:
        history = self._history(name, kept, index)
        await history.refresh()
        newest = history.folders[-1]
        return (await history.end(newest.first_message + newest.shift)).offset

    async def _first_in_files(self, name: str, kept: KeptTopic, made: Made, part: Range) -> int | None:
        path = partition_folder(name, made.unix_time_ns, part, self._namespace)
        if any(folder.path == path for folder in self._folders(name, kept, part)):
            return await self._counted_before(name, kept, part)  # made within the same second
        files = await self._files(kept, [Folder(path, 0, 0, made.unix_time_ns, part)])
        return await files.first_message(files.listed[0]) if files.listed else None

    async def _counted_before(self, name: str, kept: KeptTopic, part: Range) -> int:
        """
        How far the broker has counted, as files say, in the last generation that had this range.
        """
        files = await self._files(kept, self._folders(name, kept, part))
        return (await files.last(files.listed[-1])).message + 1 if files.listed else 0

    def _folders(self, name: str, kept: KeptTopic, part: Range) -> list[Folder]:
        indexes = range(kept.most_partitions)
        found = [folder for index in indexes for folder in folders_of(kept, name, index, self._namespace)]
        return sorted([folder for folder in found if folder.part == part], key=lambda folder: folder.unix_time_ns)

    async def _files(self, kept: KeptTopic, folders: Sequence[Folder]) -> LogFiles:
        files = LogFiles(self._seaweed, kept.form)
        await files.refresh(folders)
        return files

    def _history(self, name: str, kept: KeptTopic, index: int) -> History:
        folders = folders_of(kept, name, index, self._namespace)
        return History(self._seaweed, folders, kept.form, DecodedFiles(0), _NO_CLOCK)


class SettledEnds(Ends):
    """
    Once brokers have nothing more of them in memory.
    """

    def __init__(self, seaweed: Seaweed, namespace: str, messaging: Messaging) -> None:
        super().__init__(seaweed, namespace)
        self._messaging = messaging

    async def ends(self, name: str, kept: KeptTopic, later: Collection[Range]) -> Sequence[int]:
        if kept.generations:
            # Of what was made anew with the same range brokers count something else.
            gone = [index for index, (part, *_) in enumerate(kept.generations[-1].stretches) if part not in later]
            leader = (await self._messaging.assignments(name))[0].leader_broker
            await together([self._flushed(name, kept, index, leader) for index in gone])
        return await super().ends(name, kept, later)

    async def firsts(self, name: str, kept: KeptTopic, made: Made) -> Sequence[int]:
        leaders = {
            (each.partition.range_start, each.partition.range_stop): each
            for each in await self._messaging.assignments(name)
            if each.partition.unix_time_ns == made.unix_time_ns
        }
        return await together([self._first(name, kept, made, part, leaders.get(part)) for part in made.parts])

    async def _flushed(self, name: str, kept: KeptTopic, index: int, leader: str) -> None:
        """
        Wait until all is in files that was published to a partition which SeaweedMQ has not any more.
        """
        history = self._history(name, kept, index)
        part, unix_time_ns = history.folders[-1].part, history.folders[-1].unix_time_ns
        gone = Partition(ring_size=RING_SIZE, range_start=part.start, range_stop=part.stop, unix_time_ns=unix_time_ns)
        last = await self._messaging.next_offset(name, BrokerPartitionAssignment(partition=gone, leader_broker=leader))
        for _ in range(_LOOKS):
            await history.refresh()
            if (await history.end(EARLIEST_OFFSET)).next_message >= last:
                break
            await self._seaweed.retrying.wait(_LOOK_S)

    async def _first(
        self, name: str, kept: KeptTopic, made: Made, part: Range, assignment: BrokerPartitionAssignment | None
    ) -> int:
        """
        A broker that had a partition of this range goes on counting; what was published since may be in no file yet.
        """
        first = await self._first_in_files(name, kept, made, part)
        if first is not None or assignment is None:
            return first or 0
        counted = await self._messaging.next_offset(name, assignment)
        if counted == await self._counted_before(name, kept, part):
            return counted
        for _ in range(_LOOKS):
            first = await self._first_in_files(name, kept, made, part)
            if first is not None:
                return first
            await self._seaweed.retrying.wait(_LOOK_S)
        return counted
