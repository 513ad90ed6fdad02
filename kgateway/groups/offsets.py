"""
The committed offsets of a group, by topic and partition.

An offset counts as soon as it is in the log. The client is answered when it is committed there. A member that reads it
in between starts no later than where its predecessor was, so no record is skipped, even if the write fails.
"""

from collections.abc import Iterable, Iterator
from itertools import chain

from twisted.internet.defer import Deferred

from kgateway.cluster.pending_values import PendingValues
from kgateway.groups.records import Row, Write
from kgateway.messages.stored.offset_commit import OffsetCommitKey, OffsetCommitValue
from kgateway.topic_partition import TopicPartition
from kgateway.wire.errors import ErrorCode, KafkaError
from kgateway.wire.uuids import ZERO, Uuid


class GroupOffsets:
    """
    The offsets of one group.

    `pending` has the offsets of open transactions. Their partitions are unstable; pending offsets do not expire, and
    are deleted with the group.
    """

    def __init__(self, group_id: str, write: Write) -> None:
        self.group_id = group_id
        self.by_topic: dict[str, dict[int, OffsetCommitValue]] = {}
        self.pending: PendingValues[TopicPartition, OffsetCommitValue] = PendingValues()
        self._write = write

    def __bool__(self) -> bool:
        return bool(self.by_topic or self.pending)

    def __iter__(self) -> Iterator[tuple[TopicPartition, OffsetCommitValue]]:
        for topic, partitions in self.by_topic.items():
            for index, committed in partitions.items():
                yield TopicPartition(topic, index), committed

    def at(self, topic: str, partition: int, topic_id: Uuid = ZERO) -> OffsetCommitValue | None:
        """
        The committed offset; `None` if it was for an earlier topic of the same name.
        """
        committed = self.by_topic.get(topic, {}).get(partition)
        return committed if committed and is_of(committed, topic_id) else None

    def is_unstable(self, partition: TopicPartition) -> bool:
        """
        Whether an open transaction has an offset of the partition.
        """
        return self.pending.has(partition)

    def commit(self, commits: Iterable[tuple[TopicPartition, OffsetCommitValue]]) -> Deferred[None] | None:
        """
        Commit these offsets. Returns `None` if they are committed in the log by then, else a Deferred that fires when
        they are.
        """
        return self._write_rows(self.rows_of(commits))

    def forget(self, partitions: Iterable[TopicPartition]) -> Deferred[None] | None:
        return self._write_rows(self.tombstones(partitions))

    def tombstones(self, partitions: Iterable[TopicPartition] | None = None) -> list[Row]:
        """
        The rows that delete these offsets, or all.
        """
        wanted = (
            list(chain((partition for partition, _ in self), self.pending.keys())) if partitions is None else partitions
        )
        present = (
            partition for partition in dict.fromkeys(wanted) if self.at(*partition) or self.is_unstable(partition)
        )
        return [Row(self._key(partition), None) for partition in present]

    def replay(self, row: Row) -> None:
        key, value = row
        assert isinstance(key, OffsetCommitKey)
        if isinstance(value, OffsetCommitValue):
            self.by_topic.setdefault(key.topic, {})[key.partition] = value
            if self.pending:
                self.pending.overtake(TopicPartition(key.topic, key.partition))
            return
        partitions = self.by_topic.get(key.topic, {})
        partitions.pop(key.partition, None)
        if not partitions:
            self.by_topic.pop(key.topic, None)
        self.pending.forget(TopicPartition(key.topic, key.partition))

    def replay_pending(self, producer_id: int, row: Row) -> None:
        """
        Apply a row of an open transaction. Its value is `None` if a later one counts already.
        """
        key, value = row
        assert isinstance(key, OffsetCommitKey)
        assert isinstance(value, OffsetCommitValue | None)
        self.pending.put(producer_id, TopicPartition(key.topic, key.partition), value)

    def end_pending(self, producer_id: int, *, commits: bool) -> list[Row]:
        """
        End the producer's transaction. Returns the rows that count from now on.
        """
        counting = self.pending.end(producer_id, commits=commits)
        for (topic, partition), value in counting:
            self.by_topic.setdefault(topic, {})[partition] = value
        return [Row(self._key(partition), value) for partition, value in counting]

    def rows_of(self, commits: Iterable[tuple[TopicPartition, OffsetCommitValue]]) -> list[Row]:
        return [Row(self._key(partition), committed) for partition, committed in commits]

    def _write_rows(self, rows: list[Row]) -> Deferred[None] | None:
        committed = self._write(rows)
        for row in rows:
            self.replay(row)
        return committed

    def _key(self, partition: TopicPartition) -> OffsetCommitKey:
        return OffsetCommitKey(group=self.group_id, topic=partition.topic, partition=partition.index)


def is_of(committed: OffsetCommitValue, topic_id: Uuid) -> bool:
    """
    Whether an offset is of the topic with this id, as far as both are known.
    """
    return committed.topic_id in (topic_id, ZERO) or topic_id == ZERO


def check_metadata(metadata: str | None, size_max: int) -> None:
    """
    Raise a KafkaError if the text that is stored with an offset is too long.
    """
    size = len(metadata or "")
    if size > size_max:
        reason = f"metadata of {size} characters, but at most {size_max} are allowed"
        raise KafkaError(ErrorCode.OFFSET_METADATA_TOO_LARGE, reason)
