"""
A cluster as a program sees it that only reads: topics, files, and stored ledgers.
"""

from collections.abc import Callable, Sequence

from twisted.internet.interfaces import IReactorTime

from kgateway.broker.seaweed.cluster import SeaweedCluster
from kgateway.broker.seaweedmq.files.partition_files import PartitionFiles
from kgateway.broker.seaweedmq.files.range_reader import RangeCache
from kgateway.broker.seaweedmq.formats.format import MessageFormat
from kgateway.broker.seaweedmq.layout.topic_file import folders_of
from kgateway.broker.seaweedmq.layout.topic_paths import NAMESPACE
from kgateway.broker.seaweedmq.ledger.ledger import Ledger
from kgateway.broker.seaweedmq.ledger.records import TOPIC, LedgerKey, ReplayedLedger
from kgateway.broker.seaweedmq.partitions.partition_ledger import PartitionLedger, StoredLedger, replay_ledgers
from kgateway.broker.seaweedmq.topics.catalog import StoredTopic, TopicCatalog

Progress = Callable[[int], None]  # called with the bytes read since the last call


class TopicNotFound(Exception):
    pass


class ReadOnlyCluster:
    def __init__(self, seaweed: SeaweedCluster, clock: IReactorTime, namespace: str = NAMESPACE) -> None:
        self.unread: Sequence[str] = ()  # stored parts that cannot be read, and were not stored again
        self._seaweed = seaweed
        self._clock = clock
        self._namespace = namespace
        self._topics = TopicCatalog(seaweed, namespace)
        self.rpc = self._topics.rpc
        self._decoded = RangeCache(0)
        self._replayed: dict[LedgerKey, ReplayedLedger] = {}

    async def load(self) -> None:
        namespace = f"{self._namespace}-system"
        system = TopicCatalog(self._seaweed, namespace)
        seen = await system.read(TOPIC)
        if seen:
            replay = await replay_ledgers(self._partition_files(seen.stored, 0, namespace))
            self._replayed, self.unread = replay.found, replay.missed

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
        return self._partition_files(stored, index, self._namespace)

    def replayed(self, stored: StoredTopic, index: int) -> ReplayedLedger | None:
        return self._replayed.get(LedgerKey(stored.file.id, index))

    async def ledger(self, stored: StoredTopic, index: int) -> Ledger:
        """
        The stored ledger of a partition, and what the files have after it.
        """
        message_format, partition_files, replayed = (
            stored.file.format,
            self.partition_files(stored, index),
            self.replayed(stored, index),
        )
        known = StoredLedger(replayed.ledger if replayed else empty_ledger(partition_files, message_format))
        name = f"{stored.name}-{index}"
        await PartitionLedger(known, name, partition_files, message_format, self._clock, lambda: None).follow()
        start = await partition_files.start()
        if start is not None:
            known.ledger.drop_before(start)
        return known.ledger

    def _partition_files(self, stored: StoredTopic, index: int, namespace: str) -> PartitionFiles:
        folders = folders_of(stored.file, stored.name, index, namespace)
        return PartitionFiles(self._seaweed, folders, stored.file.format, self._decoded, self._clock)


def empty_ledger(partition_files: PartitionFiles, message_format: MessageFormat) -> Ledger:
    oldest = partition_files.folders[0]
    return Ledger(message_format.batched, oldest.unix_time_ns, oldest.part)
