"""
The groups of one state log: how they are loaded, written and kept.
"""

from collections.abc import Callable, Iterable, Sequence

import pytest
from twisted.internet.defer import Deferred, succeed
from twisted.internet.task import Clock
from twisted.logger import capturedLogs
from zope.interface import implementer

from kgateway.cluster.partition import Appended
from kgateway.config.settings import Settings
from kgateway.coordinating import state_shard
from kgateway.coordinating.state_shard import StateShard
from kgateway.groups import shard
from kgateway.groups.classic.group import ClassicGroup
from kgateway.groups.coding import encoded
from kgateway.groups.group import Group, GroupType
from kgateway.groups.offsets import Place
from kgateway.groups.rows import Row, Write
from kgateway.groups.shard import Shard
from kgateway.interfaces import Cancel, IReplay, IStateLog, KeyValue, ProducerEpoch
from kgateway.messages.stored.group_metadata import GroupMetadataKey, GroupMetadataValue
from kgateway.messages.stored.offset_commit import OffsetCommitKey
from kgateway.wire.errors import ErrorCode, KafkaError
from tests.broker.behaviour import START_MS, refusal, result
from tests.groups.coordinating import value
from tests.groups.replayed import replayed

T0 = Place("t", 0)


@implementer(IStateLog)
class Scripted:
    """
    A state log that does what a test says.
    """

    def __init__(self, *pieces: list[KeyValue]) -> None:
        self.epoch = self.index = 0
        self.pieces: Iterable[list[KeyValue]] = list(pieces)
        self.appended: list[Sequence[KeyValue]] = []
        self.snapshots: list[list[KeyValue]] = []
        self.undecided: list[int | None] = []  # where, by snapshot
        self.snapshot_ends: Callable[[], Deferred[None]] = lambda: succeed(None)
        self.safe: Callable[[], Deferred[None]] | None = None
        self.error: KafkaError | None = None
        self.lose: Callable[[], None] = lambda: None
        self.heard = False

    def replay(self) -> Deferred[IReplay]:
        return replayed(self.pieces)

    def append(self, records: Sequence[KeyValue], producer: ProducerEpoch | None = None) -> Appended:
        if self.error:
            raise self.error
        self.appended.append(records)
        stored = self.safe and self.safe()
        return Appended(len(self.appended) - 1, -1, 0, stored=stored, safe=self.safe() if self.safe else None)

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
        self.ended: list[StateShard] = []
        self.shard = Shard(self.log, self.make, self.clock, self.ended.append)
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
        One turn of the reactor.
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


def offsets(shard: Shard) -> dict[str, dict[Place, int]]:
    return {name: {place: one.offset for place, one in held.offsets} for name, held in shard.groups.items()}


def test_loading_by_turns() -> None:
    """
    A piece of the log is read a turn; meanwhile groups cannot be asked for.
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


def test_groups_are_made_by_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    So many groups a turn are made of what was read, and told that they are whole.
    """
    for module in (shard, state_shard):
        monkeypatch.setattr(module, "PIECE", 2)
    world = World([committed(f"g{number}", number) for number in range(5)]).started()
    turns = 0
    while not world.shard.is_serving:
        world.turn()
        turns += 1
    assert turns == 4
    assert len(world.shard.groups) == 5


def test_nothing_is_loaded_in_a_turn() -> None:
    """
    A log without records is there at once.
    """
    assert World().started().shard.is_serving


def test_last_word_counts() -> None:
    """
    Of a key the last value is loaded, and a tombstone leaves nothing: no offset, and no group.
    """
    records = [committed("g", 1), committed("gone", 1), classic("gone"), committed("g", 2), committed("gone", None)]
    world = World([*records, (classic("gone")[0], None)]).started()
    assert offsets(world.shard) == {"g": {T0: 2}}


@pytest.mark.parametrize("order", [1, -1])
def test_groups_and_offsets_in_any_order(order: int) -> None:
    """
    Whether offsets come before the group or behind it, both are there.
    """
    world = World([committed("g", 1), classic("g")][::order]).started()
    assert offsets(world.shard) == {"g": {T0: 1}}
    assert world.shard.groups["g"].group.protocol_type == "consumer"


def test_what_is_not_understood_is_kept() -> None:
    """
    Records of unknown kinds and damaged ones are passed over, are in the next snapshot, and harm no group.
    """
    strange = [(b"\0\x63 strange", b"value"), (b"\0\x01 damaged", b"value"), classic("raises", -1), committed("g", 1)]
    with capturedLogs() as logged:
        world = World(list(strange)).started()
    assert offsets(world.shard) == {"raises": {}, "g": {T0: 1}}
    assert [event["log_level"].name for event in logged] == ["debug", "warn", "critical", "info"]
    world.shard._take_snapshot()
    assert world.log.snapshots == [strange]


def test_write() -> None:
    """
    Rows are one batch; where they are safe at once nobody waits.
    """
    world = World().started()
    held = world.shard.add("g", GroupType.CLASSIC)
    assert held.offsets.commit([(Place("t", n), value(n)) for n in range(3)]) is None
    assert world.log.appended == [[committed("g", n, n) for n in range(3)]]
    assert world.shard.write([]) is None
    assert len(world.log.appended) == 1


def test_write_that_takes_time() -> None:
    """
    Where rows are safe later, who writes gets to know when; what is not waited for is not missed.
    """
    world = World().started()
    waiting: list[Deferred[None]] = []

    def later() -> Deferred[None]:
        waiting.append(Deferred())
        return waiting[-1]

    world.log.safe = later
    held = world.shard.add("g", GroupType.CLASSIC)
    safe = held.offsets.commit([(T0, value(1))])
    assert safe
    stored, really = waiting
    stored.errback(KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "no"))
    assert stored.result is None
    assert not safe.called
    really.errback(KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "the disk is full"))
    assert str(refusal(lambda: safe)) == "NOT_COORDINATOR: the disk is full"


@pytest.mark.parametrize(
    ("code", "told"),
    [
        (ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.UNKNOWN_SERVER_ERROR),
        (ErrorCode.NOT_COORDINATOR, ErrorCode.NOT_COORDINATOR),
    ],
)
def test_write_that_fails(code: ErrorCode, told: ErrorCode) -> None:
    """
    What cannot be written changes nothing, and is told in the words of coordinators.
    """
    world = World([committed("g", 1)]).started()
    world.log.error = KafkaError(code, "so it is")
    held = world.shard.groups["g"]
    for write in (
        lambda: held.offsets.commit([(T0, value(2))]),
        lambda: held.offsets.forget([T0]),
        lambda: world.shard.delete(held),
    ):
        error = refusal(write)
        assert (error.code, error.message) == (told, "so it is")
    assert offsets(world.shard) == {"g": {T0: 1}}
    assert world.shard._image == dict([committed("g", 1)])


def test_snapshots(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    After so many records there is a snapshot of all that is true by then; not two at a time.
    """
    monkeypatch.setattr(state_shard, "SNAPSHOT_RECORDS", 3)
    world = World().started()
    under_way: Deferred[None] = Deferred()
    world.log.snapshot_ends = lambda: under_way
    held = world.shard.add("g", GroupType.CLASSIC)
    held.offsets.commit([(T0, value(1))])
    held.offsets.commit([(T0, value(2))])
    assert world.log.snapshots == []
    held.offsets.commit([(Place("t", 1), value(3))])
    assert world.log.snapshots == [[committed("g", 2), committed("g", 3, 1)]]
    held.offsets.forget([T0])
    for number in range(4):
        held.offsets.commit([(T0, value(number))])
    assert len(world.log.snapshots) == 1
    under_way.callback(None)
    held.offsets.commit([(T0, value(9))])
    assert world.log.snapshots[1:] == [[committed("g", 3, 1), committed("g", 9)]]


def test_large_states_are_written_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    A state is written again after as many records as it has, at least.
    """
    monkeypatch.setattr(state_shard, "SNAPSHOT_RECORDS", 1)
    world = World([committed("g", n, n) for n in range(5)]).started()
    held = world.shard.groups["g"]
    for count in range(1, 12):
        held.offsets.commit([(T0, value(count))])
        assert len(world.log.snapshots) == count // 5


def test_snapshots_of_what_does_not_count_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Of several transactions that end at once one is counted after the other: a snapshot in between says where those
    begin of which it has nothing.
    """
    monkeypatch.setattr(state_shard, "SNAPSHOT_RECORDS", 1)
    world = World([]).started()
    held = world.shard.add("g", GroupType.CLASSIC)
    for producer_id in (7, 8):
        world.shard.commit_in_transaction(held, (producer_id, 0), [(T0, value(producer_id))])
    world.shard.end_transaction(7, True)
    world.shard.end_transaction(8, True)
    held.offsets.commit([(T0, value(9))])
    assert world.log.undecided == [0, 1, None]
    assert world.log.snapshots == [[committed("g", offset)] for offset in (7, 8, 9)]


def test_snapshot_after_a_long_replay(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    What was replayed and overwritten counts: a gateway that is started often takes snapshots, too.
    """
    monkeypatch.setattr(state_shard, "SNAPSHOT_RECORDS", 3)
    world = World([committed("g", n) for n in range(5)]).started()
    world.shard.groups["g"].offsets.commit([(T0, value(5))])
    assert world.log.snapshots == [[committed("g", 5)]]


def test_snapshot_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    A snapshot that cannot be kept is told in the log, and tried again later.
    """
    monkeypatch.setattr(state_shard, "SNAPSHOT_RECORDS", 1)
    world = World().started()
    ends: list[Deferred[None]] = []

    def end() -> Deferred[None]:
        ends.append(Deferred())
        return ends[-1]

    world.log.snapshot_ends = end
    held = world.shard.add("g", GroupType.CLASSIC)
    held.offsets.commit([(T0, value(1))])
    with capturedLogs() as logged:
        ends[0].errback(KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "full"))
    assert len(logged) == 1
    held.offsets.commit([(T0, value(1))])
    assert len(ends) == 2


def test_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Who has lost the log stops all groups, lets a snapshot go, and says so once.
    """
    monkeypatch.setattr(state_shard, "SNAPSHOT_RECORDS", 2)
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


def test_lost_while_loading() -> None:
    """
    A load ends with the loss, and who waits for it hears of that.
    """
    world = World([committed("g", 1)], [committed("h", 1)]).started()
    loaded = world.shard.when_loaded()
    world.log.lose()
    result(loaded)
    assert world.clock.getDelayedCalls() == []
    assert world.ended == [world.shard]
    assert not world.shard.is_serving


def test_replace() -> None:
    """
    A group of another kind takes the place of the one of its id, which stops; offsets stay.
    """
    world = World([classic("g"), committed("g", 1)]).started()
    before = world.shard.groups["g"]
    world.shard.put(world.make(GroupType.CONSUMER, "g", world.shard.write))
    assert world.shard.groups["g"] is before
    assert (before.group.type, world.stopped) == (GroupType.CONSUMER, ["g"])
    assert offsets(world.shard) == {"g": {T0: 1}}


def test_delete(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    A group is deleted with its offsets in one batch, what it wrote last first.
    """
    world = World([classic("g"), committed("g", 1), committed("g", 2, 1)]).started()
    held = world.shard.groups["g"]
    first, last = Row(GroupMetadataKey(group="first"), None), Row(GroupMetadataKey(group="last"), None)
    monkeypatch.setattr(held.group, "rows", lambda: iter([first, last]))
    world.shard.delete(held)
    gone = [committed("g", None), committed("g", None, 1), encoded(last), encoded(first)]
    assert world.log.appended == [gone]
    assert (offsets(world.shard), world.stopped) == ({}, ["g"])
