"""
How far a group has come: the offsets it committed, by topic and partition.

An offset counts as soon as it is in the log; who commits hears of it when it is safe there. A member that reads it in
between starts no later than the one before it has come, so nothing is left out, whatever becomes of the write.
"""

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import NamedTuple

from twisted.internet.defer import Deferred

from kgateway.groups.rows import Row, Write
from kgateway.messages.stored.offset_commit import OffsetCommitKey, OffsetCommitValue
from kgateway.wire.uuids import ZERO, Uuid


class Place(NamedTuple):
    """
    A partition that a group has an offset of.
    """

    topic: str
    partition: int


class GroupOffsets:
    """
    The offsets of one group.

    `pending` is of transactions that have not ended: by producer id, the partitions in which they will commit. Those
    offsets are unstable, do not expire, and go with the group.
    """

    def __init__(self, group_id: str, write: Write) -> None:
        self.group_id = group_id
        self.by_topic: dict[str, dict[int, OffsetCommitValue]] = {}
        self.pending: dict[int, set[Place]] = {}
        self._write = write

    def __bool__(self) -> bool:
        return bool(self.by_topic or self.pending)

    def __iter__(self) -> Iterator[tuple[Place, OffsetCommitValue]]:
        for topic, partitions in self.by_topic.items():
            for partition, committed in partitions.items():
                yield Place(topic, partition), committed

    def at(self, topic: str, partition: int, topic_id: Uuid = ZERO) -> OffsetCommitValue | None:
        """
        What is committed there; nothing where that was for an earlier topic of the name.
        """
        committed = self.by_topic.get(topic, {}).get(partition)
        return committed if committed and is_of(committed, topic_id) else None

    def is_unstable(self, place: Place) -> bool:
        """
        Whether a transaction is about to commit there.
        """
        return any(place in places for places in self.pending.values())

    def commit(self, commits: Iterable[tuple[Place, OffsetCommitValue]]) -> Deferred[None] | None:
        """
        Keep these. `None` when they are safe, else what fires when they are.
        """
        return self._keep([Row(self._key(place), committed) for place, committed in commits])

    def forget(self, places: Iterable[Place]) -> Deferred[None] | None:
        """
        Have them no more, as far as they are there.
        """
        return self._keep(self.tombstones(places))

    def tombstones(self, places: Iterable[Place] | None = None) -> list[Row]:
        """
        Rows that say so of these, or of all.
        """
        wanted = list(chain((place for place, _ in self), *self.pending.values())) if places is None else places
        known = (place for place in dict.fromkeys(wanted) if self.at(*place) or self.is_unstable(place))
        return [Row(self._key(place), None) for place in known]

    def replay(self, row: Row) -> None:
        """
        This is in the log.
        """
        key, value = row
        assert isinstance(key, OffsetCommitKey)
        if isinstance(value, OffsetCommitValue):
            self.by_topic.setdefault(key.topic, {})[key.partition] = value
            return
        partitions = self.by_topic.get(key.topic, {})
        partitions.pop(key.partition, None)
        if not partitions:
            self.by_topic.pop(key.topic, None)
        for pending in self.pending.values():
            pending.discard(Place(key.topic, key.partition))

    def _keep(self, rows: list[Row]) -> Deferred[None] | None:
        safe = self._write(rows)
        for row in rows:
            self.replay(row)
        return safe

    def _key(self, place: Place) -> OffsetCommitKey:
        return OffsetCommitKey(group=self.group_id, topic=place.topic, partition=place.partition)


def is_of(committed: OffsetCommitValue, topic_id: Uuid) -> bool:
    """
    Whether an offset is of the topic with this id, as far as both are known.
    """
    return committed.topic_id in (topic_id, ZERO) or topic_id == ZERO
