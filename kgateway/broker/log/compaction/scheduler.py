"""
Compacts the partitions of a data folder, one after the other, the dirtiest first.
"""

from collections.abc import Awaitable, Callable, Iterable

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from kgateway.broker.log.compaction.partition_compaction import DirtyPart, Overtaken, PartitionCompaction
from kgateway.broker.log.data_folder.checkpoints import OffsetCheckpoint
from kgateway.broker.log.partition.partition import LogPartition
from kgateway.broker.log.runtime import describe_error
from kgateway.broker.log.segments.batch_scan import Damaged
from kgateway.broker.rounds import Rounds
from kgateway.cluster.view import Topic
from kgateway.log_messages import COMPACTION_FAILED, NOT_COMPACTED, NOT_COMPACTED_DAMAGED
from kgateway.topic_partition import TopicPartition
from kgateway.wire.errors import KafkaError

BACKOFF_MS = 15_000  # as log.cleaner.backoff.ms


def is_compacted(topic: Topic) -> bool:
    """
    Whether only the last record of a key has to stay, as in each state of a coordinator.
    """
    return topic.internal or topic.config.compacts


class CompactionScheduler:
    """
    Looks for dirty partitions now and then, and at once for more if there was one.
    """

    _log = Logger()

    def __init__(
        self,
        clock: IReactorTime,
        backoff_ms: int,
        partitions: Callable[[], Awaitable[list[LogPartition]]],
        compacting: PartitionCompaction,
        cleaned: OffsetCheckpoint,
    ) -> None:
        self._partitions = partitions
        self._compacting = compacting
        self._cleaned = cleaned
        self._damaged = set[LogPartition]()  # not compacted until they are opened again
        self._logged: dict[TopicPartition, str] = {}  # why a partition was not compacted; each reason is logged once
        self._stopped = False
        self._rounds = Rounds(clock, backoff_ms, backoff_ms, self._go_round, COMPACTION_FAILED)

    def stop(self) -> Deferred[None]:
        """
        Begin nothing more; fires once the work under way has ended.
        """
        self._stopped = True
        return self._rounds.finish()

    async def _go_round(self) -> None:
        self._damaged = {one for one in self._damaged if not one.lost}
        partitions = [one for one in await self._partitions() if one not in self._damaged]
        try:
            while partitions := await self._dirtiest_first(partitions):
                partitions = [one for one in partitions if await self._compact(one)]
        finally:
            await self._compacting.rest()

    async def _dirtiest_first(self, partitions: Iterable[LogPartition]) -> list[LogPartition]:
        found = [(dirt.ratio, one) for one in partitions if (dirt := await self._dirty_part(one))]
        return [one for _, one in sorted(found, key=lambda row: -row[0])]

    async def _dirty_part(self, partition: LogPartition) -> DirtyPart | None:
        if partition.lost or self._stopped or len(partition.segment_list.segments) < 2:
            return None
        try:
            dirt = await self._compacting.look(partition, self._cleaned_to(partition))
        except (OSError, Overtaken) as error:
            self._log_refusal(partition, error)
            return None
        return dirt if dirt.is_worth_it(partition.topic.config) else None

    def _cleaned_to(self, partition: LogPartition) -> int:
        """
        The cleaned offset. If it is beyond the log end, the log has lost its end since, and the offset is forgotten.
        """
        if self._cleaned.of(partition.topic_partition) > partition.log_end:
            self._cleaned.forget(partition.topic_partition)
        return self._cleaned.of(partition.topic_partition)

    async def _compact(self, partition: LogPartition) -> bool:
        """
        Compact, after another look, because others had their turn. Returns whether that succeeded.
        """
        dirt = await self._dirty_part(partition)
        if dirt is None:
            return False
        try:
            cleaned_to = await self._compacting.compact(partition, dirt)
            if not partition.lost:
                await self._cleaned.put(partition.topic_partition, cleaned_to)
        except (Damaged, OSError, KafkaError, Overtaken) as error:
            self._log_refusal(partition, error)
            return False
        self._logged.pop(partition.topic_partition, None)
        return True

    def _log_refusal(self, partition: LogPartition, error: Exception) -> None:
        if partition.lost or self._stopped or isinstance(error, Overtaken):
            return
        if isinstance(error, Damaged):
            self._damaged.add(partition)
            self._log.error(NOT_COMPACTED_DAMAGED, folder=partition.folder.name, error=error)
        elif self._logged.get(partition.topic_partition) != describe_error(error):
            self._logged[partition.topic_partition] = describe_error(error)
            self._log.warn(NOT_COMPACTED, folder=partition.folder.name, why=describe_error(error))
