"""
How far a group has come: the offsets it committed, by topic and partition.

An offset counts as soon as it is in the log; who commits hears of it when it is safe there. A member that reads it in
between starts no later than the one before it has come, so nothing is left out, whatever becomes of the write.
"""

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import NamedTuple

from twisted.internet.defer import Deferred

from kgateway.cluster.undecided import Undecided
from kgateway.groups.rows import Row, Write
from kgateway.messages.stored.offset_commit import OffsetCommitKey, OffsetCommitValue
from kgateway.wire.errors import ErrorCode, KafkaError
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

    `pending` is of transactions that have not ended: what they will commit. Those partitions are unstable; what is
    pending does not expire, and goes with the group.
    """

    def __init__(self, group_id: str, write: Write) -> None:
        self.group_id = group_id
        self.by_topic: dict[str, dict[int, OffsetCommitValue]] = {}
        self.pending: Undecided[Place, OffsetCommitValue] = Undecided()
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
        return self.pending.has(place)

    def commit(self, commits: Iterable[tuple[Place, OffsetCommitValue]]) -> Deferred[None] | None:
        """
        Keep these. `None` when they are safe, else what fires when they are.
        """
        return self._keep(self.to_be_written(commits))

    def forget(self, places: Iterable[Place]) -> Deferred[None] | None:
        """
        Have them no more, as far as they are there.
        """
        return self._keep(self.tombstones(places))

    def tombstones(self, places: Iterable[Place] | None = None) -> list[Row]:
        """
        Rows that say so of these, or of all.
        """
        wanted = list(chain((place for place, _ in self), self.pending.keys())) if places is None else places
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
            if self.pending:
                self.pending.overtake(Place(key.topic, key.partition))
            return
        partitions = self.by_topic.get(key.topic, {})
        partitions.pop(key.partition, None)
        if not partitions:
            self.by_topic.pop(key.topic, None)
        self.pending.forget(Place(key.topic, key.partition))

    def replay_pending(self, producer_id: int, row: Row) -> None:
        """
        This is in the log, in the transaction of a producer; without a value where a later one counts already.
        """
        key, value = row
        assert isinstance(key, OffsetCommitKey)
        assert isinstance(value, OffsetCommitValue | None)
        self.pending.put(producer_id, Place(key.topic, key.partition), value)

    def end_pending(self, producer_id: int, *, commits: bool) -> list[Row]:
        """
        The transaction of this producer has ended. What counts of it is committed now; the rows of that.
        """
        counting = self.pending.end(producer_id, commits=commits)
        for (topic, partition), value in counting:
            self.by_topic.setdefault(topic, {})[partition] = value
        return [Row(self._key(place), value) for place, value in counting]

    def to_be_written(self, commits: Iterable[tuple[Place, OffsetCommitValue]]) -> list[Row]:
        """
        These commits, as they are written.
        """
        return [Row(self._key(place), committed) for place, committed in commits]

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


def check_metadata(metadata: str | None, size_max: int) -> None:
    """
    Refuse a text that may not be kept with an offset, for it is too long.
    """
    size = len(metadata or "")
    if size > size_max:
        reason = f"a text of {size} characters, and {size_max} are allowed"
        raise KafkaError(ErrorCode.OFFSET_METADATA_TOO_LARGE, reason)
