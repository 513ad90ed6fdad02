"""
Compacts the partitions of a data folder, one after the other, the dirtiest first.
"""

from collections.abc import Awaitable, Callable, Iterable

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from kgateway.broker.log.checkpoints import Place
from kgateway.broker.log.compaction.compacting import Compacting, Overtaken
from kgateway.broker.log.compaction.dirt import Dirt
from kgateway.broker.log.kept_offsets import KeptOffsets
from kgateway.broker.log.partition import LogPartition
from kgateway.broker.log.parts import plain
from kgateway.broker.log.walking import Damaged
from kgateway.broker.rounds import Rounds
from kgateway.cluster.view import Topic
from kgateway.wire.errors import KafkaError

BACKOFF_MS = 15_000  # as log.cleaner.backoff.ms


def is_compacted(topic: Topic) -> bool:
    """
    Whether of the records of a key only the last one has to stay; of the state of a coordinator it is so.
    """
    return topic.internal or topic.config.compacts


class Cleaner:
    """
    Looks for dirt every now and then, and for more at once where there was some.
    """

    _log = Logger()

    def __init__(
        self,
        clock: IReactorTime,
        backoff_ms: int,
        partitions: Callable[[], Awaitable[list[LogPartition]]],
        compacting: Compacting,
        cleaned: KeptOffsets,
    ) -> None:
        self._partitions = partitions
        self._compacting = compacting
        self._cleaned = cleaned
        self._damaged = set[LogPartition]()  # which stay as they are until they are opened again
        self._told: dict[Place, str] = {}  # why a partition was not compacted; the same is told once
        self._stopped = False
        self._rounds = Rounds(clock, backoff_ms, backoff_ms, self._go_round, "partitions could not be compacted")

    def stop(self) -> Deferred[None]:
        """
        Begin nothing any more; fires when what was begun has ended.
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
        """
        Those of them that are worth it.
        """
        found = [(dirt.ratio, one) for one in partitions if (dirt := await self._dirt(one))]
        return [one for _, one in sorted(found, key=lambda row: -row[0])]

    async def _dirt(self, partition: LogPartition) -> Dirt | None:
        """
        What there is to compact, if it is worth it, and can be told.
        """
        if partition.lost or self._stopped or len(partition.log.segments) < 2:
            return None
        try:
            dirt = await self._compacting.look(partition, self._cleaned_to(partition))
        except (OSError, Overtaken) as error:
            self._tell(partition, error)
            return None
        return dirt if dirt.is_worth_it(partition.topic.config) else None

    def _cleaned_to(self, partition: LogPartition) -> int:
        """
        Where more is told than there is, the log has lost its end since, and gets another.
        """
        if self._cleaned.of(partition.place) > partition.log_end:
            self._cleaned.forget(partition.place)
        return self._cleaned.of(partition.place)

    async def _compact(self, partition: LogPartition) -> bool:
        """
        Whether that went well. Since it was looked at others had their turn.
        """
        dirt = await self._dirt(partition)
        if dirt is None:
            return False
        try:
            cleaned_to = await self._compacting.compact(partition, dirt)
            if not partition.lost:
                await self._cleaned.put(partition.place, cleaned_to)
        except (Damaged, OSError, KafkaError, Overtaken) as error:
            self._tell(partition, error)
            return False
        self._told.pop(partition.place, None)
        return True

    def _tell(self, partition: LogPartition, error: Exception) -> None:
        """
        Why it is not compacted. What is gone, or was stopped, is missed by nobody.
        """
        if partition.lost or self._stopped or isinstance(error, Overtaken):
            return
        if isinstance(error, Damaged):
            self._damaged.add(partition)
            reason = f"{partition.folder.name} is not compacted, for it is damaged: {error}"
            self._log.error("{reason}. `kgateway log check` tells more.", reason=reason)
        elif self._told.get(partition.place) != plain(error):
            self._told[partition.place] = plain(error)
            self._log.warn("{folder} is not compacted: {why}", folder=partition.folder.name, why=plain(error))
