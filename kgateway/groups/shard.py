"""
The groups that one state log holds, and how a new group takes its id.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.python.failure import Failure

from kgateway.coordination.shard import PIECE, CoordinatorShard, Ended
from kgateway.coordination.slicing import batched, by_turns
from kgateway.groups.group import Group, GroupType
from kgateway.groups.offsets import GroupOffsets
from kgateway.groups.records import Row, Write, decoded, encoded, group_of
from kgateway.interfaces import IStateLog, ProducerEpoch
from kgateway.messages.stored.group_metadata import GroupMetadataKey
from kgateway.messages.stored.offset_commit import OffsetCommitKey, OffsetCommitValue
from kgateway.topic_partition import TopicPartition

Make = Callable[[GroupType, str, Write], Group]

G = TypeVar("G", bound=Group)
_Beginning = tuple[Sequence[Row], Callable[[G], object], Callable[[G, Failure], object]]


@dataclass(slots=True)
class GroupEntry:
    group: Group
    offsets: GroupOffsets


class GroupShard(CoordinatorShard):
    noun = "groups"

    def __init__(self, log: IStateLog, make: Make, clock: IReactorTime, ended: Ended) -> None:
        super().__init__(log, clock, ended)
        self.groups: dict[str, GroupEntry] = {}
        self._make = make
        self._in_transactions: dict[int, set[str]] = {}  # ids of groups with pending offsets, by producer id
        # Transactions that ended while the shard was loading: producer ids, and whether they commit.
        self._ended_early: list[tuple[int, bool]] = []

    def write(self, rows: Sequence[Row]) -> Deferred[None] | None:
        self.check()
        return self.append([encoded(row) for row in rows]) if rows else None

    def commit_in_transaction(
        self, entry: GroupEntry, producer: ProducerEpoch, commits: Iterable[tuple[TopicPartition, OffsetCommitValue]]
    ) -> Deferred[None] | None:
        """
        Write these offsets, which count when the producer's transaction is committed.
        """
        producer_id, _ = producer
        rows = entry.offsets.rows_of(commits)
        committed = self.append([encoded(row) for row in rows], producer)
        for row in rows:
            self._replay_pending(producer_id, entry, row)
        return committed

    def end_transaction(self, producer_id: int, commits: bool) -> None:
        """
        The transaction of this producer has its marker in the log.
        """
        if not self.is_serving:
            self._ended_early.append((producer_id, commits))
            return
        for group_id in self._in_transactions.pop(producer_id, ()):
            if group_id in self.groups:  # it may have been deleted
                rows = self.groups[group_id].offsets.end_pending(producer_id, commits=commits)
                self.apply_records([encoded(row) for row in rows])
        self.transaction_ended(producer_id)

    def _replay_pending(self, producer_id: int, entry: GroupEntry, row: Row) -> None:
        entry.offsets.replay_pending(producer_id, row)
        self._in_transactions.setdefault(producer_id, set()).add(entry.offsets.group_id)

    def add(self, group_id: str, kind: GroupType) -> GroupEntry:
        self.put(self._make(kind, group_id, self.write))
        return self.groups[group_id]

    def put(self, group: Group) -> None:
        """
        Make this the group of its id. A group that had the id stops; its offsets stay.
        """
        entry = self.groups.get(group.group_id)
        if entry:
            entry.group.stop()
            entry.group = group
        else:
            self.groups[group.group_id] = GroupEntry(group, GroupOffsets(group.group_id, self.write))

    def delete(self, entry: GroupEntry) -> Deferred[None] | None:
        committed = self.write([*entry.offsets.tombstones(), *tombstones(entry.group)])
        entry.group.stop()
        del self.groups[entry.offsets.group_id]
        return committed

    def _count(self) -> int:
        return len(self.groups)

    def _replay(self, key: bytes, value: bytes) -> bool:
        row = decoded(key, value)
        if row:
            self._replay_row(row)
        return row is not None

    def _replay_open(self, producer_id: int, key: bytes, value: bytes | None) -> bool:
        row = decoded(key, value)
        if row:
            self._replay_pending(producer_id, self._entry(group_of(row.key)), row)
        return row is not None

    def _entry(self, group_id: str) -> GroupEntry:
        return self.groups.get(group_id) or self.add(group_id, GroupType.CLASSIC)

    def _replay_row(self, row: Row) -> None:
        group_id = group_of(row.key)
        entry = self._entry(group_id)
        if isinstance(row.key, OffsetCommitKey):
            entry.offsets.replay(row)
            return
        kind = GroupType.CLASSIC if isinstance(row.key, GroupMetadataKey) else GroupType.CONSUMER
        if entry.group.type is not kind:  # rows of offsets may come before the rows that have the group's type
            entry.group = self._make(kind, group_id, self.write)
        entry.group.replay(row)

    async def _replayed(self) -> None:
        async for groups in by_turns(batched(list(self.groups.values()), PIECE), self._clock):
            for entry in groups:
                entry.group.loaded()

    def _loaded(self) -> None:
        early, self._ended_early = self._ended_early, []
        for producer_id, commits in early:
            self.end_transaction(producer_id, commits)

    def _clear(self) -> None:
        for entry in self.groups.values():
            entry.group.stop()
        self.groups.clear()


def tombstones(group: Group) -> list[Row]:
    """
    The rows in reverse order, so that what was written first is deleted last.
    """
    return [Row(row.key, None) for row in reversed(list(group.rows()))]


class FirstWrite(Generic[G]):
    """
    Writes for a new group, which takes its id with its first write: in one batch with the tombstones of the group that
    had the id before, if any. So a member that is refused leaves nothing behind: neither a group without members, nor a
    change of the group that was there.
    """

    group: G

    def __init__(
        self, first: Sequence[Row], write: Write, done: Callable[[G], object], undone: Callable[[G, Failure], object]
    ) -> None:
        """
        `first` is written before the group's own rows. `done` is called once it is written, `undone` if the write fails
        later.
        """
        self._write = write
        self._beginning: _Beginning[G] | None = first, done, undone

    def write(self, rows: Sequence[Row]) -> Deferred[None] | None:
        if self._beginning is None:
            return self._write(rows)
        first, done, undone = self._beginning
        written = self._write([*first, *rows])
        self._beginning = None
        done(self.group)
        if written is not None:
            written.addErrback(self._failed, undone)
        return written

    def _failed(self, failure: Failure, undone: Callable[[G, Failure], object]) -> Failure:
        undone(self.group, failure)
        return failure
