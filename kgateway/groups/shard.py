"""
The groups that one state log holds.

A shard keeps an image of its log: the last value of each key, as compaction would leave it. A snapshot is that image;
a load makes the image first and replays what is left of it, so what was overwritten is never decoded.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure

from kgateway.cluster.partition import Appended
from kgateway.groups.coding import decoded, encoded, group_of
from kgateway.groups.group import Group, GroupType
from kgateway.groups.offsets import GroupOffsets
from kgateway.groups.refusals import as_coordinator, coordinators_failure
from kgateway.groups.rows import Row, Write
from kgateway.groups.turns import by_turns, in_pieces
from kgateway.interfaces import Cancel, IStateLog
from kgateway.messages.stored.group_metadata import GroupMetadataKey
from kgateway.messages.stored.offset_commit import OffsetCommitKey
from kgateway.wire.errors import ErrorCode, KafkaError
from kgateway.wire.malformed import Malformed

SNAPSHOT_RECORDS = 10_000  # at least so many records are between two snapshots
_PIECE = 500  # rows or groups; a few milliseconds

Make = Callable[[GroupType, str, Write], Group]


@dataclass(slots=True)
class Held:
    """
    A group and its offsets.
    """

    group: Group
    offsets: GroupOffsets


class Shard:
    """
    The coordinator of some groups, from when they are loaded until it is stopped or has lost its log.
    """

    _log = Logger()

    def __init__(self, log: IStateLog, make: Make, clock: IReactorTime, ended: Callable[["Shard"], None]) -> None:
        self.groups: dict[str, Held] = {}
        self.log = log
        self._make = make
        self._clock = clock
        self._ended = ended
        self._image: dict[bytes, bytes] = {}
        self._since_snapshot = 0
        self._snapshot: Deferred[None] | None = None
        self._waiting: list[Deferred[None]] = []
        self._why_not: KafkaError | None = KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "groups are being loaded")
        self._forget_loss: Cancel | None = None
        self._loading: Deferred[None] | None = None

    def start(self) -> None:
        """
        Load the groups.
        """
        self._forget_loss = self.log.on_lost(self.stop)
        if not self._is_over:
            self._loading = Deferred.fromCoroutine(self._load()).addErrback(self._failed)

    def check(self) -> None:
        """
        Refuse who asks for a group as long as they are not there.
        """
        if self._why_not:
            raise KafkaError(self._why_not.code, self._why_not.message)

    @property
    def is_serving(self) -> bool:
        """
        Whether groups can be asked for.
        """
        return self._why_not is None

    def when_loaded(self) -> Deferred[None]:
        """
        Fires when groups can be asked for, or never will.
        """
        loaded: Deferred[None] = Deferred()
        if self._is_loading:
            self._waiting.append(loaded)
        else:
            loaded.callback(None)
        return loaded

    def write(self, rows: Sequence[Row]) -> Deferred[None] | None:
        """
        The `Write` of its groups.
        """
        self.check()
        if not rows:
            return None
        records = [encoded(row) for row in rows]
        try:
            appended = self.log.append(records)
        except KafkaError as error:
            raise as_coordinator(error) from None
        for key, value in records:
            self._overwrite(key, value)
        self._since_snapshot += len(records)
        if self._since_snapshot >= max(SNAPSHOT_RECORDS, len(self._image)) and self._snapshot is None:
            self._take_snapshot()
        return _safe(appended)

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

    def stop(self) -> None:
        """
        Be coordinator no more.
        """
        self._end(KafkaError(ErrorCode.NOT_COORDINATOR, "this gateway is the group's coordinator no more"))

    @property
    def _is_loading(self) -> bool:
        return self._why_not is not None and self._why_not.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS

    @property
    def _is_over(self) -> bool:
        return self._why_not is not None and not self._is_loading

    async def _load(self) -> None:
        pieces = self.log.replay()
        if isinstance(pieces, Deferred):
            pieces = await pieces
        count = 0
        async for records in by_turns(pieces, self._clock):
            count += len(records)
            for key, value in records:
                self._overwrite(key, value)
        self._since_snapshot = count - len(self._image)
        async for kept in by_turns(in_pieces(list(self._image.items()), _PIECE), self._clock):
            for key, last in kept:
                self._replay(key, last)
        async for groups in by_turns(in_pieces(list(self.groups.values()), _PIECE), self._clock):
            for held in groups:
                held.group.loaded()
        if count:
            self._log.info("{groups} groups are loaded, of {records} records", groups=len(self.groups), records=count)
        self._become(None)

    def _overwrite(self, key: bytes, value: bytes | None) -> None:
        self._image.pop(key, None)  # so that what is newer comes later
        if value is not None:
            self._image[key] = value

    def _replay(self, key: bytes, value: bytes) -> None:
        """
        What is not understood is kept for who will.
        """
        try:
            row = decoded(key, value)
            if row:
                self._take(row)
            else:
                self._log.debug("a record of a kind that is not known here is passed over: {key}", key=key)
        except Malformed as error:
            self._log.warn("a record of a group is damaged, and passed over: {error}", error=error)
        except Exception:  # a bug costs one group something, not the others everything
            self._log.failure("a record of a group is passed over: {key}", key=key)

    def _take(self, row: Row) -> None:
        group_id = group_of(row.key)
        held = self.groups.get(group_id) or self.add(group_id, GroupType.CLASSIC)
        if isinstance(row.key, OffsetCommitKey):
            held.offsets.replay(row)
            return
        kind = GroupType.CLASSIC if isinstance(row.key, GroupMetadataKey) else GroupType.CONSUMER
        if held.group.type is not kind:  # offsets may come before what tells whose they are
            held.group = self._make(kind, group_id, self.write)
        held.group.replay(row)

    def _take_snapshot(self) -> None:
        self._since_snapshot = 0
        self._snapshot = self.log.snapshot(self._image.items())
        self._snapshot.addErrback(self._no_snapshot).addBoth(self._snapshot_ended)

    def _no_snapshot(self, failure: Failure) -> None:
        if not self._is_over:
            self._log.failure("no snapshot of groups could be kept; the next start takes longer", failure)

    def _snapshot_ended(self, _: None) -> None:
        self._snapshot = None

    def _failed(self, failure: Failure) -> None:
        if self._is_over:
            return
        self._log.failure("groups cannot be loaded", failure)
        self._end(KafkaError(ErrorCode.NOT_COORDINATOR, "the groups could not be loaded"))

    def _end(self, why: KafkaError) -> None:
        if self._is_over:
            return
        if self._forget_loss:
            self._forget_loss()
        self._become(why)
        for under_way in (self._loading, self._snapshot):
            if under_way:
                under_way.cancel()
        for held in self.groups.values():
            held.group.stop()
        self.groups.clear()
        self._ended(self)

    def _become(self, why_not: KafkaError | None) -> None:
        self._why_not = why_not
        waiting, self._waiting = self._waiting, []
        for loaded in waiting:
            loaded.callback(None)


def tombstones(group: Group) -> list[Row]:
    """
    The last of it first, as it was the other way round when it was made.
    """
    return [Row(row.key, None) for row in reversed(list(group.rows()))]


def _safe(appended: Appended) -> Deferred[None] | None:
    """
    What those wait for who are promised that it lasts.
    """
    if appended.stored is not None:
        appended.stored.addErrback(lambda _: None)  # if that fails, so does the other
    if appended.safe is not None:
        appended.safe.addErrback(coordinators_failure)
    return appended.safe
