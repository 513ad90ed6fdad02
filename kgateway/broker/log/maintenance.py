"""
Applies retention and compaction to the partitions of an open data folder.
"""

from collections.abc import Callable

from twisted.internet.defer import Deferred
from twisted.logger import Logger

from kgateway.broker.log.compaction.partition_compaction import Compactor, PartitionCompaction
from kgateway.broker.log.compaction.scheduler import CompactionScheduler, is_compacted
from kgateway.broker.log.data_folder.checkpoints import OffsetCheckpoint
from kgateway.broker.log.partition.partition import LogPartition
from kgateway.broker.log.runtime import LogRuntime
from kgateway.broker.partition.retention import RetentionRounds, retention_limits
from kgateway.cluster.view import Topic
from kgateway.topic_partition import PartitionId
from kgateway.wire.errors import KafkaError
from kgateway.wire.uuids import Uuid

PartitionsWithFolder = Callable[[Callable[[Topic], bool]], list[tuple[Topic, int]]]


class Maintenance:
    _log = Logger()

    def __init__(
        self,
        runtime: LogRuntime,
        partitions_with_folder: PartitionsWithFolder,
        partition: Callable[[Uuid, int], LogPartition],
        compactor: Compactor,
        cleaned: OffsetCheckpoint,
        *,
        retention_check_ms: int,
        compaction_backoff_ms: int,
    ) -> None:
        self._runtime = runtime
        self._partitions_with_folder = partitions_with_folder  # called in a thread
        self._partition = partition
        self._compactor = compactor
        self._rounds = RetentionRounds(runtime.clock, retention_check_ms, self._with_retention, self._partition_of)
        compacting = PartitionCompaction(runtime, compactor)
        self._scheduler = CompactionScheduler(
            runtime.clock, compaction_backoff_ms, self._to_compact, compacting, cleaned
        )

    async def stop(self) -> None:
        """
        Begin no more rounds, and wait for those under way.
        """
        self._rounds.stop()
        self._compactor.stop()
        await self._scheduler.stop()

    def _partition_of(self, key: PartitionId) -> LogPartition:
        return self._partition(*key)

    def _with_retention(self) -> Deferred[list[PartitionId]]:
        return self._keys(lambda topic: not retention_limits(topic).are_none)

    def _keys(self, wanted: Callable[[Topic], bool]) -> Deferred[list[PartitionId]]:
        return self._runtime.in_thread(
            lambda: [PartitionId(topic.id, index) for topic, index in self._partitions_with_folder(wanted)]
        )

    async def _to_compact(self) -> list[LogPartition]:
        found = list[LogPartition]()
        for topic_id, index in await self._keys(is_compacted):
            await self._runtime.in_turns(iter([None]))
            try:
                found.append(self._partition(topic_id, index))
            except KafkaError as error:
                self._log.debug("cannot compact a partition now: {error}", error=error)
        return found
