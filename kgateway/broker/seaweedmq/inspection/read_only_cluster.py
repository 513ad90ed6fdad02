"""
A cluster as a program sees it that only reads: topics, files, and saved ledgers.
"""

from collections.abc import Callable, Sequence

from twisted.internet.interfaces import IReactorTime

from kgateway.broker.seaweed.cluster import SeaweedCluster
from kgateway.broker.seaweedmq.files.partition_files import PartitionFiles
from kgateway.broker.seaweedmq.files.range_reader import RangeCache
from kgateway.broker.seaweedmq.layout.topic_file import folders_of
from kgateway.broker.seaweedmq.layout.topic_paths import NAMESPACE, side_folder
from kgateway.broker.seaweedmq.ledger.ledger import Ledger
from kgateway.broker.seaweedmq.ledger.snapshot import UnusableLedger
from kgateway.broker.seaweedmq.partitions.partition_ledger import empty_ledger, follow
from kgateway.broker.seaweedmq.partitions.side_files import FilerSideFiles
from kgateway.broker.seaweedmq.topics.catalog import StoredTopic, TopicCatalog
from kgateway.topic_partition import PartitionId

Progress = Callable[[int], None]  # called with the bytes read since the last call


class TopicNotFound(Exception):
    pass


class ReadOnlyCluster:
    def __init__(self, seaweed: SeaweedCluster, clock: IReactorTime, namespace: str = NAMESPACE) -> None:
        self._seaweed = seaweed
        self._clock = clock
        self._namespace = namespace
        self._topics = TopicCatalog(seaweed, namespace)
        self.rpc = self._topics.rpc
        self._decoded = RangeCache(0)

    async def topics(self, names: Sequence[str] = ()) -> list[StoredTopic]:
        """
        The topics with these names; all topics if none is named.
        """
        found: list[StoredTopic] = []
        for name in names or await self._topics.names():
            seen = await self._topics.read(name)
            if seen:
                found.append(seen.stored)
            elif names:
                raise TopicNotFound(f"there is no topic {name}")
        return found

    def partition_files(self, stored: StoredTopic, index: int) -> PartitionFiles:
        folders = folders_of(stored.file, stored.name, index, self._namespace)
        return PartitionFiles(self._seaweed, folders, stored.file.format, self._decoded, self._clock)

    async def saved_ledger(self, stored: StoredTopic, index: int) -> Ledger | None:
        """
        The saved ledger of a partition, if there is one; raises UnusableLedger if its file is damaged.
        """
        side_files = FilerSideFiles(self._seaweed, side_folder(stored.name, index, self._namespace))
        found = await side_files.ledger(PartitionId(stored.file.id, index))
        return found.ledger if found else None

    async def ledger(self, stored: StoredTopic, index: int) -> Ledger:
        """
        The ledger of a partition: the saved one, if it can be used, and what the files have after it.
        """
        message_format, files = stored.file.format, self.partition_files(stored, index)
        await files.refresh()
        try:
            ledger = await self.saved_ledger(stored, index) or empty_ledger(files, message_format)
            await follow(ledger, files, message_format)
        except UnusableLedger:
            ledger = empty_ledger(files, message_format)
            await follow(ledger, files, message_format)
        start = await files.start()
        if start is not None:
            ledger.drop_before(start)
        return ledger
