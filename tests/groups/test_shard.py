"""
The groups of one state log: how they are loaded, written and deleted.
"""

from collections.abc import Callable, Iterable, Sequence

import pytest
from twisted.internet.defer import Deferred, succeed
from twisted.internet.task import Clock
from twisted.logger import capturedLogs
from zope.interface import implementer

from kgateway.cluster.partition import Appended
from kgateway.config.settings import Settings
from kgateway.coordination import shard as coordinator_shard
from kgateway.coordination.shard import CoordinatorShard
from kgateway.groups import shard
from kgateway.groups.classic.group import ClassicGroup
from kgateway.groups.group import Group, GroupType
from kgateway.groups.records import Row, Write, encoded
from kgateway.groups.shard import GroupShard
from kgateway.interfaces import Cancel, IReplay, IStateLog, KeyValue, ProducerEpoch
from kgateway.messages.stored.group_metadata import GroupMetadataKey, GroupMetadataValue
from kgateway.messages.stored.offset_commit import OffsetCommitKey
from kgateway.topic_partition import TopicPartition
from kgateway.wire.errors import ErrorCode, KafkaError
from tests.broker.behaviour import START_MS, refusal, result
from tests.groups.fake_replay import replayed
from tests.groups.group_world import value

T0 = TopicPartition("t", 0)


@implementer(IStateLog)
class Scripted:
    """
    A scripted state log.
    """

    def __init__(self, *pieces: list[KeyValue]) -> None:
        self.epoch = self.index = 0
        self.pieces: Iterable[list[KeyValue]] = list(pieces)
        self.appended: list[Sequence[KeyValue]] = []
        self.snapshots: list[list[KeyValue]] = []
        self.undecided: list[int | None] = []  # the start of undecided records, by snapshot
        self.snapshot_ends: Callable[[], Deferred[None]] = lambda: succeed(None)
        self.committed: Callable[[], Deferred[None]] | None = None
        self.error: KafkaError | None = None
        self.lose: Callable[[], None] = lambda: None
        self.heard = False

    def replay(self) -> Deferred[IReplay]:
        return replayed(self.pieces)

    def append(self, records: Sequence[KeyValue], producer: ProducerEpoch | None = None) -> Appended:
        if self.error:
            raise self.error
        self.appended.append(records)
        stored = self.committed and self.committed()
        return Appended(
            len(self.appended) - 1, -1, 0, stored=stored, committed=self.committed() if self.committed else None
        )

    def snapshot(self, state: Iterable[KeyValue], undecided_from: int | None = None) -> Deferred[None]:
        self.snapshots.append(list(state))
        self.undecided.append(undecided_from)
        return self.snapshot_ends()

    def on_lost(self, listener: Callable[[], None]) -> Cancel:
        self.lose = listener

        def cancel() -> None:
            self.heard = False

        self.heard = True
        return cancel


class World:
    """
    A shard over a scripted log.
    """

    def __init__(self, *pieces: list[KeyValue]) -> None:
        self.clock = Clock()
        self.log = Scripted(*pieces)
        self.ended: list[CoordinatorShard] = []
        self.shard = GroupShard(self.log, self.make, self.clock, self.ended.append)
        self.stopped: list[str] = []

    def make(self, kind: GroupType, group_id: str, write: Write) -> Group:
        world = self

        class Noting(ClassicGroup):
            type = kind

            def replay(self, row: Row) -> None:
                if isinstance(row.value, GroupMetadataValue) and row.value.generation < 0:
                    raise ZeroDivisionError
                super().replay(row)

            def stop(self, *why: ErrorCode) -> None:
                world.stopped.append(group_id)
                super().stop(*why)

        return Noting(group_id, settings=Settings(), clock=self.clock, now_ms=lambda: START_MS, write=write)

    def turn(self) -> None:
        """
        Run one turn of the reactor.
        """
        call = self.clock.calls.pop(0)
        call.called = 1
        call.func(*call.args)

    def started(self) -> "World":
        self.shard.start()
        return self


def committed(group_id: str, offset: int | None, partition: int = 0) -> KeyValue:
    key = OffsetCommitKey(group=group_id, topic="t", partition=partition)
    return encoded(Row(key, None if offset is None else value(offset)))


def classic(group_id: str, generation: int = 3) -> KeyValue:
    written = GroupMetadataValue(
        protocol_type="consumer",
        generation=generation,
        protocol=None,
        leader=None,
        current_state_timestamp=5,
        members=[],
    )
    return encoded(Row(GroupMetadataKey(group=group_id), written))


def offsets(shard: GroupShard) -> dict[str, dict[TopicPartition, int]]:
    return {name: {place: one.offset for place, one in entry.offsets} for name, entry in shard.groups.items()}


def test_a_load_reads_one_piece_in_a_turn() -> None:
    """
    Requests are refused meanwhile.
    """
    world = World([committed("g", 1)], [committed("g", 2)], [committed("h", 3)]).started()
    loaded = world.shard.when_loaded()
    for _ in range(2):
        assert refusal(world.shard.check).code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        assert (loaded.called, world.shard.is_serving) == (False, False)
        world.turn()
    assert (loaded.called, world.shard.is_serving) == (True, True)
    world.shard.check()
    result(world.shard.when_loaded())
    assert offsets(world.shard) == {"g": {T0: 2}, "h": {T0: 3}}


def test_groups_are_restored_in_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    They are then told that they are loaded.
    """
    for module in (shard, coordinator_shard):
        monkeypatch.setattr(module, "PIECE", 2)
    world = World([committed(f"g{number}", number) for number in range(5)]).started()
    turns = 0
    while not world.shard.is_serving:
        world.turn()
        turns += 1
    assert turns == 4
    assert len(world.shard.groups) == 5


def test_an_empty_log_is_loaded_at_once() -> None:
    assert World().started().shard.is_serving


def test_the_last_value_of_a_key_counts() -> None:
    """
    A tombstone leaves no offset, and no group.
    """
    records = [committed("g", 1), committed("gone", 1), classic("gone"), committed("g", 2), committed("gone", None)]
    world = World([*records, (classic("gone")[0], None)]).started()
    assert offsets(world.shard) == {"g": {T0: 2}}


@pytest.mark.parametrize("order", [1, -1])
def test_offsets_may_precede_their_group(order: int) -> None:
    world = World([committed("g", 1), classic("g")][::order]).started()
    assert offsets(world.shard) == {"g": {T0: 1}}
    assert world.shard.groups["g"].group.protocol_type == "consumer"


def test_unknown_records_are_kept() -> None:
    """
    Unknown and damaged records are skipped, are in the next snapshot, and harm no group.
    """
    strange = [(b"\0\x63 strange", b"value"), (b"\0\x01 damaged", b"value"), classic("raises", -1), committed("g", 1)]
    with capturedLogs() as logged:
        world = World(list(strange)).started()
    assert offsets(world.shard) == {"raises": {}, "g": {T0: 1}}
    assert [event["log_level"].name for event in logged] == ["debug", "warn", "critical", "info"]
    world.shard._take_snapshot()
    assert world.log.snapshots == [strange]


def test_rows_are_written_in_one_batch() -> None:
    """
    Nobody waits if they are committed at once.
    """
    world = World().started()
    entry = world.shard.add("g", GroupType.CLASSIC)
    assert entry.offsets.commit([(TopicPartition("t", n), value(n)) for n in range(3)]) is None
    assert world.log.appended == [[committed("g", n, n) for n in range(3)]]
    assert world.shard.write([]) is None
    assert len(world.log.appended) == 1


def test_a_later_commit_fires_a_deferred() -> None:
    """
    Its failure may be ignored.
    """
    world = World().started()
    waiting: list[Deferred[None]] = []

    def later() -> Deferred[None]:
        waiting.append(Deferred())
        return waiting[-1]

    world.log.committed = later
    entry = world.shard.add("g", GroupType.CLASSIC)
    committed = entry.offsets.commit([(T0, value(1))])
    assert committed
    stored, really = waiting
    stored.errback(KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "no"))
    assert stored.result is None
    assert not committed.called
    really.errback(KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "the disk is full"))
    assert str(refusal(lambda: committed)) == "NOT_COORDINATOR: the disk is full"


@pytest.mark.parametrize(
    ("code", "told"),
    [
        (ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.UNKNOWN_SERVER_ERROR),
        (ErrorCode.NOT_COORDINATOR, ErrorCode.NOT_COORDINATOR),
    ],
)
def test_a_failed_write_changes_nothing(code: ErrorCode, told: ErrorCode) -> None:
    """
    It fails with a coordinator's error code.
    """
    world = World([committed("g", 1)]).started()
    world.log.error = KafkaError(code, "so it is")
    entry = world.shard.groups["g"]
    for write in (
        lambda: entry.offsets.commit([(T0, value(2))]),
        lambda: entry.offsets.forget([T0]),
        lambda: world.shard.delete(entry),
    ):
        error = refusal(write)
        assert (error.code, error.message) == (told, "so it is")
    assert offsets(world.shard) == {"g": {T0: 1}}
    assert world.shard._image == dict([committed("g", 1)])


def test_snapshots_are_taken_after_many_records(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    There is one at a time, of the whole state.
    """
    monkeypatch.setattr(coordinator_shard, "SNAPSHOT_RECORDS", 3)
    world = World().started()
    under_way: Deferred[None] = Deferred()
    world.log.snapshot_ends = lambda: under_way
    entry = world.shard.add("g", GroupType.CLASSIC)
    entry.offsets.commit([(T0, value(1))])
    entry.offsets.commit([(T0, value(2))])
    assert world.log.snapshots == []
    entry.offsets.commit([(TopicPartition("t", 1), value(3))])
    assert world.log.snapshots == [[committed("g", 2), committed("g", 3, 1)]]
    entry.offsets.forget([T0])
    for number in range(4):
        entry.offsets.commit([(T0, value(number))])
    assert len(world.log.snapshots) == 1
    under_way.callback(None)
    entry.offsets.commit([(T0, value(9))])
    assert world.log.snapshots[1:] == [[committed("g", 3, 1), committed("g", 9)]]


def test_large_states_have_fewer_snapshots(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Between two there are at least as many records as the state has.
    """
    monkeypatch.setattr(coordinator_shard, "SNAPSHOT_RECORDS", 1)
    world = World([committed("g", n, n) for n in range(5)]).started()
    entry = world.shard.groups["g"]
    for count in range(1, 12):
        entry.offsets.commit([(T0, value(count))])
        assert len(world.log.snapshots) == count // 5


def test_snapshots_between_ends_of_transactions(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Of several transactions that end at once one is counted after the other: a snapshot in between has the offset
    where the first open one begins.
    """
    monkeypatch.setattr(coordinator_shard, "SNAPSHOT_RECORDS", 1)
    world = World([]).started()
    entry = world.shard.add("g", GroupType.CLASSIC)
    for producer_id in (7, 8):
        world.shard.commit_in_transaction(entry, (producer_id, 0), [(T0, value(producer_id))])
    world.shard.end_transaction(7, True)
    world.shard.end_transaction(8, True)
    entry.offsets.commit([(T0, value(9))])
    assert world.log.undecided == [0, 1, None]
    assert world.log.snapshots == [[committed("g", offset)] for offset in (7, 8, 9)]


def test_replayed_records_count_for_snapshots(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    So a gateway that restarts often takes snapshots, too.
    """
    monkeypatch.setattr(coordinator_shard, "SNAPSHOT_RECORDS", 3)
    world = World([committed("g", n) for n in range(5)]).started()
    world.shard.groups["g"].offsets.commit([(T0, value(5))])
    assert world.log.snapshots == [[committed("g", 5)]]


def test_a_failed_snapshot_is_retried(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    The failure is logged.
    """
    monkeypatch.setattr(coordinator_shard, "SNAPSHOT_RECORDS", 1)
    world = World().started()
    ends: list[Deferred[None]] = []

    def end() -> Deferred[None]:
        ends.append(Deferred())
        return ends[-1]

    world.log.snapshot_ends = end
    entry = world.shard.add("g", GroupType.CLASSIC)
    entry.offsets.commit([(T0, value(1))])
    with capturedLogs() as logged:
        ends[0].errback(KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "full"))
    assert len(logged) == 1
    entry.offsets.commit([(T0, value(1))])
    assert len(ends) == 2


def test_a_lost_log_stops_all_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    A snapshot is cancelled, and the end is reported once.
    """
    monkeypatch.setattr(coordinator_shard, "SNAPSHOT_RECORDS", 2)
    world = World([committed("g", 1), committed("h", 1)]).started()
    cancelled: list[Deferred[None]] = []
    world.log.snapshot_ends = lambda: Deferred(cancelled.append)
    world.shard.groups["g"].offsets.commit([(T0, value(2)), (T0, value(3))])
    world.log.lose()
    world.shard.stop()
    assert world.stopped == ["g", "h"]
    assert (len(world.ended), len(cancelled), world.log.heard) == (1, 1, False)
    assert world.shard.groups == {}
    assert refusal(world.shard.check).code is ErrorCode.NOT_COORDINATOR
    assert refusal(lambda: world.shard.write([])).code is ErrorCode.NOT_COORDINATOR


def test_a_lost_log_ends_the_load() -> None:
    """
    Those that wait for it are told.
    """
    world = World([committed("g", 1)], [committed("h", 1)]).started()
    loaded = world.shard.when_loaded()
    world.log.lose()
    result(loaded)
    assert world.clock.getDelayedCalls() == []
    assert world.ended == [world.shard]
    assert not world.shard.is_serving


def test_a_group_of_another_kind_replaces_the_old_one() -> None:
    """
    The old one stops, and the offsets are kept.
    """
    world = World([classic("g"), committed("g", 1)]).started()
    before = world.shard.groups["g"]
    world.shard.put(world.make(GroupType.CONSUMER, "g", world.shard.write))
    assert world.shard.groups["g"] is before
    assert (before.group.type, world.stopped) == (GroupType.CONSUMER, ["g"])
    assert offsets(world.shard) == {"g": {T0: 1}}


def test_a_group_is_deleted_in_one_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Its offsets are deleted with it, in reverse order.
    """
    world = World([classic("g"), committed("g", 1), committed("g", 2, 1)]).started()
    entry = world.shard.groups["g"]
    first, last = Row(GroupMetadataKey(group="first"), None), Row(GroupMetadataKey(group="last"), None)
    monkeypatch.setattr(entry.group, "rows", lambda: iter([first, last]))
    world.shard.delete(entry)
    gone = [committed("g", None), committed("g", None, 1), encoded(last), encoded(first)]
    assert world.log.appended == [gone]
    assert (offsets(world.shard), world.stopped) == ({}, ["g"])
