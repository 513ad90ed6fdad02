"""
The groups that one state log holds.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime

from kgateway.coordinating.state_shard import PIECE, Ended, StateShard
from kgateway.coordinating.turns import by_turns, in_pieces
from kgateway.groups.coding import decoded, encoded, group_of
from kgateway.groups.group import Group, GroupType
from kgateway.groups.offsets import GroupOffsets, Place
from kgateway.groups.rows import Row, Write
from kgateway.interfaces import IStateLog, ProducerEpoch
from kgateway.messages.stored.group_metadata import GroupMetadataKey
from kgateway.messages.stored.offset_commit import OffsetCommitKey, OffsetCommitValue

Make = Callable[[GroupType, str, Write], Group]


@dataclass(slots=True)
class Held:
    """
    A group and its offsets.
    """

    group: Group
    offsets: GroupOffsets


class Shard(StateShard):
    """
    The coordinator of some groups.
    """

    things = "groups"

    def __init__(self, log: IStateLog, make: Make, clock: IReactorTime, ended: Ended) -> None:
        super().__init__(log, clock, ended)
        self.groups: dict[str, Held] = {}
        self._make = make
        self._in_transactions: dict[int, set[str]] = {}  # groups with pending offsets, by producer
        self._ended_early: list[tuple[int, bool]] = []  # transactions, while it was loaded

    def write(self, rows: Sequence[Row]) -> Deferred[None] | None:
        """
        The `Write` of its groups.
        """
        self.check()
        return self.append([encoded(row) for row in rows]) if rows else None

    def commit_in_transaction(
        self, held: Held, producer: ProducerEpoch, commits: Iterable[tuple[Place, OffsetCommitValue]]
    ) -> Deferred[None] | None:
        """
        Keep these offsets of a group, which count when the producer's transaction is committed.
        """
        producer_id, _ = producer
        rows = held.offsets.to_be_written(commits)
        safe = self.append([encoded(row) for row in rows], producer)
        for row in rows:
            self._hold(producer_id, held, row)
        return safe

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
                self.count_in([encoded(row) for row in rows])
        self.decided(producer_id)

    def _hold(self, producer_id: int, held: Held, row: Row) -> None:
        held.offsets.replay_pending(producer_id, row)
        self._in_transactions.setdefault(producer_id, set()).add(held.offsets.group_id)

    def add(self, group_id: str, kind: GroupType) -> Held:
        """
        A group that is not there yet.
        """
        self.put(self._make(kind, group_id, self.write))
        return self.groups[group_id]

    def put(self, group: Group) -> None:
        """
        Let it be the group of its id. One that was there before stops; its offsets stay.
        """
        held = self.groups.get(group.group_id)
        if held:
            held.group.stop()
            held.group = group
        else:
            self.groups[group.group_id] = Held(group, GroupOffsets(group.group_id, self.write))

    def delete(self, held: Held) -> Deferred[None] | None:
        """
        Forget the group and its offsets.
        """
        safe = self.write([*held.offsets.tombstones(), *tombstones(held.group)])
        held.group.stop()
        del self.groups[held.offsets.group_id]
        return safe

    def _count(self) -> int:
        return len(self.groups)

    def _replay(self, key: bytes, value: bytes) -> bool:
        row = decoded(key, value)
        if row:
            self._take_row(row)
        return row is not None

    def _replay_undecided(self, producer_id: int, key: bytes, value: bytes | None) -> bool:
        row = decoded(key, value)
        if row:
            self._hold(producer_id, self._having(group_of(row.key)), row)
        return row is not None

    def _having(self, group_id: str) -> Held:
        return self.groups.get(group_id) or self.add(group_id, GroupType.CLASSIC)

    def _take_row(self, row: Row) -> None:
        group_id = group_of(row.key)
        held = self._having(group_id)
        if isinstance(row.key, OffsetCommitKey):
            held.offsets.replay(row)
            return
        kind = GroupType.CLASSIC if isinstance(row.key, GroupMetadataKey) else GroupType.CONSUMER
        if held.group.type is not kind:  # offsets may come before what tells whose they are
            held.group = self._make(kind, group_id, self.write)
        held.group.replay(row)

    async def _replayed(self) -> None:
        async for groups in by_turns(in_pieces(list(self.groups.values()), PIECE), self._clock):
            for held in groups:
                held.group.loaded()

    def _loaded(self) -> None:
        early, self._ended_early = self._ended_early, []
        for producer_id, commits in early:
            self.end_transaction(producer_id, commits)

    def _let_go(self) -> None:
        for held in self.groups.values():
            held.group.stop()
        self.groups.clear()


def tombstones(group: Group) -> list[Row]:
    """
    The last of it first, as it was the other way round when it was made.
    """
    return [Row(row.key, None) for row in reversed(list(group.rows()))]
