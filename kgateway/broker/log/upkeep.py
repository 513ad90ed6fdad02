"""
What goes on by itself while a data folder is open: what topics keep no longer goes, and what they keep is compacted.
"""

from collections.abc import Callable
from pathlib import Path

from twisted.internet.defer import Deferred
from twisted.logger import Logger

from kgateway.broker.log.checkpoints import Place
from kgateway.broker.log.compaction.cleaner import Cleaner, is_compacted
from kgateway.broker.log.compaction.compacting import Compacting, Compactor
from kgateway.broker.log.kept_offsets import CLEANED_OFFSETS, KeptOffsets
from kgateway.broker.log.partition import LogPartition
from kgateway.broker.log.parts import LogParts
from kgateway.broker.retention import limits_of
from kgateway.broker.retention_rounds import RetentionRounds
from kgateway.cluster.view import Topic
from kgateway.wire.errors import KafkaError
from kgateway.wire.uuids import Uuid

Key = tuple[Uuid, int]
Written = Callable[[Callable[[Topic], bool]], list[tuple[Topic, int]]]


class Upkeep:
    """
    That of one folder. `written` gives the partitions of some topics that have a folder, in a thread.
    """

    _log = Logger()

    def __init__(
        self,
        folder: Path,
        parts: LogParts,
        written: Written,
        partition: Callable[[Uuid, int], LogPartition],
        compactor: Compactor,
        *,
        retention_check_ms: int,
        compaction_backoff_ms: int,
    ) -> None:
        self._parts = parts
        self._written = written
        self._partition = partition
        self._compactor = compactor
        self._cleaned = KeptOffsets(folder / CLEANED_OFFSETS, parts)
        self._rounds = RetentionRounds(parts.clock, retention_check_ms, self._kept, self._at)
        compacting = Compacting(parts, compactor)
        self._cleaner = Cleaner(parts.clock, compaction_backoff_ms, self._compacted, compacting, self._cleaned)

    def keep(self, places: set[Place]) -> None:
        """
        There are no other partitions than these.
        """
        self._cleaned.keep(places)

    def begin(self, name: str) -> Deferred[None]:
        """
        There will be a topic of this name: fires when no file tells of an earlier one.
        """
        return self._cleaned.begin(name)

    def forget(self, place: Place) -> None:
        """
        There is no such partition any more.
        """
        self._cleaned.forget(place)

    async def stop(self) -> None:
        """
        Begin nothing any more, and wait for what was begun.
        """
        self._rounds.stop()
        self._compactor.stop()
        await self._cleaner.stop()
        await self._cleaned.stop()

    def _at(self, key: Key) -> LogPartition:
        return self._partition(*key)

    def _kept(self) -> Deferred[list[Key]]:
        """
        The partitions that may have records which do not stay for ever.
        """
        return self._keys(lambda topic: not limits_of(topic).are_none)

    def _keys(self, wanted: Callable[[Topic], bool]) -> Deferred[list[Key]]:
        return self._parts.in_thread(lambda: [(topic.id, index) for topic, index in self._written(wanted)])

    async def _compacted(self) -> list[LogPartition]:
        """
        Those of topics that are compacted, as far as they are to be had now.
        """
        found = list[LogPartition]()
        for topic_id, index in await self._keys(is_compacted):
            await self._parts.in_turns(iter([None]))
            try:
                found.append(self._partition(topic_id, index))
            except KafkaError as error:
                self._log.debug("a partition is not compacted now: {error}", error=error)
        return found
