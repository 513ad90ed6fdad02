"""
The state log of a coordinator, over partitions that answer at once and partitions that answer later.
"""

from collections.abc import Callable
from dataclasses import replace
from math import inf
from typing import Any

import pytest
from twisted.internet.defer import CancelledError, Deferred

from kgateway.broker import state_log
from kgateway.broker.memory import MemoryBroker, MemoryPartition
from kgateway.broker.state_log import PIECE_RECORDS, MemorySnapshots, Snapshot, StateLog
from kgateway.cluster.partition import Appended, Isolation, Origin, Read
from kgateway.cluster.view import PartitionState, Topic
from kgateway.coordination.placement import _cached, partition_for
from kgateway.interfaces import Cancel, KeyValue
from kgateway.records.batch import Batch
from kgateway.records.control import Marker, marker_batch
from kgateway.records.record import Record, records
from kgateway.wire.errors import ErrorCode, KafkaError
from kgateway.wire.uuids import Uuid
from tests.broker.behaviour import START_MS, batch, refusal, result
from tests.broker.behaviour import World as MemoryWorld
from tests.records.values import batch_of

LOST = KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "node 2 has it")


class SlowPartition(MemoryPartition):
    """
    A partition on remote storage: reads and appends are answered later, and a read returns one buffer.
    """

    def __init__(self) -> None:
        state = PartitionState(leader_id=1, leader_epoch=5, replicas=(1,), in_sync=(1,))
        topic = Topic(Uuid.random(), "__consumer_offsets", (state,), internal=True)
        super().__init__(topic, 0, now_ms=lambda: START_MS, producer_expiry_ms=1)
        self.safe_end = 0
        self.reads: list[Callable[[], None]] = []
        self.appends: list[Deferred[None]] = []
        self.origins: set[Origin] = set()
        self.watching = 0

    @property
    def high_watermark(self) -> int:
        return self.safe_end

    def append(self, batch: Batch, origin: Origin, client_id: str | None = None) -> Appended:
        self.origins.add(origin)
        self.appends.append(Deferred())
        return replace(super().append(batch, origin), stored=Deferred(), committed=self.appends[-1])

    def read(self, offset: int, max_bytes: int, isolation: Isolation, at_least_one: bool, due: float = inf) -> Any:
        found = super().read(offset, max_bytes, isolation, at_least_one, due)
        later: Deferred[Read] = Deferred()
        self.reads.append(lambda: later.callback(replace(found, batches=[b"".join(found.batches)])))
        return later

    def watch(self, listener: Callable[[], None]) -> Cancel:
        self.watching += 1
        cancel = super().watch(listener)

        def counted() -> None:
            self.watching -= 1
            cancel()

        return counted

    def become_safe(self, end: int) -> None:
        self.safe_end = end
        self._listeners.wake()


class World:
    """
    A state log over a slow partition, and its snapshots.
    """

    def __init__(self) -> None:
        self.partition = SlowPartition()
        self.snapshots = MemorySnapshots()
        self.log = StateLog(self.partition, self.snapshots, lambda: START_MS)

    def write(self, *keys: bytes) -> None:
        """
        Append and commit one batch for each key.
        """
        for key in keys:
            self.log.append([(key, b"value")])
        self.partition.become_safe(self.partition.log_end)

    def pieces(self) -> list[list[KeyValue]]:
        """
        The pieces of a replay whose reads are answered one by one.
        """
        replay = self.log.replay()
        for answer in self.partition.reads:  # the list grows meanwhile
            answer()
        pieces = result(replay)
        return list(pieces)

    def keys(self) -> list[bytes]:
        return [key for piece in self.pieces() for key, _ in piece]


@pytest.fixture
def world() -> World:
    return World()


@pytest.mark.parametrize(
    ("key", "of_8", "of_50"),
    [
        ("", 0, 0),
        ("g", 7, 3),
        ("my-group", 2, 12),  # a negative hash
        ("console-consumer-12345", 2, 6),
        ("äöü-gruppe", 6, 18),
        ("😀", 3, 49),  # two units of UTF-16
        ("polygenelubricants", 0, 0),  # the hash without an absolute value
    ],
)
def test_keys_have_kafkas_partition(key: str, of_8: int, of_50: int) -> None:
    """
    Kafka 4.3.1 chooses the same partitions.
    """
    assert (partition_for(key, 8), partition_for(key, 50)) == (of_8, of_50)


def test_partitions_of_long_ids_are_not_cached() -> None:
    """
    Ids may have 32 KiB each, and a client that asks for many would fill the memory.
    """
    before = _cached.cache_info().currsize
    assert partition_for("a" * 32_767, 8) == partition_for("a" * 32_767, 8)
    assert _cached.cache_info().currsize == before
    partition_for("an id that nobody else has", 8)
    assert _cached.cache_info().currsize == before + 1


def test_appends_have_the_leader_epoch_of_the_partition(world: World) -> None:
    """
    A state log writes with the origin of a coordinator.
    """
    world.write(b"a")
    assert world.log.epoch == 5
    assert world.partition.origins == {Origin.COORDINATOR}


@pytest.mark.parametrize("read_bytes", [1, 1 << 20])
def test_replay_over_a_slow_partition(read_bytes: int, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    A replay waits for each read and accepts buffers of one batch or many.
    """
    monkeypatch.setattr(state_log, "_READ_BYTES", read_bytes)
    world.write(b"a", b"b", b"c")
    assert world.keys() == [b"a", b"b", b"c"]
    assert len(world.partition.reads) == (3 if read_bytes == 1 else 1)


def test_replay_ends_at_the_high_watermark(world: World) -> None:
    """
    Records that may still be undone are not replayed.
    """
    world.log.append([(b"a", b"value")])
    assert world.keys() == []
    world.partition.become_safe(1)
    assert world.keys() == [b"a"]


def test_replay_begins_at_the_log_start(world: World) -> None:
    """
    Records removed by retention or compaction are not read.
    """
    world.write(b"a", b"b")
    world.partition.log_start = 1
    assert world.keys() == [b"b"]


def test_replay_comes_in_pieces(world: World) -> None:
    """
    Snapshot and records are replayed in pieces of bounded size, whatever the size of the batches.
    """
    result(world.snapshots.save(Snapshot(0, [(b"s", b"")] * (PIECE_RECORDS + 1))))
    world.log.append([(b"r", b"")] * PIECE_RECORDS)
    world.write(*[b"t"] * PIECE_RECORDS)
    assert [len(piece) for piece in world.pieces()] == [PIECE_RECORDS, PIECE_RECORDS, PIECE_RECORDS, 1]


def test_replay_decodes_one_piece_at_a_time(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    decoded = list[int]()

    def counted(batch: Batch) -> Any:
        decoded.append(batch.header.base_offset)
        return records(batch)

    monkeypatch.setattr(state_log, "records", counted)
    world.write(*[b"k"] * (PIECE_RECORDS + 1))
    replay = world.log.replay()
    world.partition.reads[0]()
    pieces = result(replay)
    assert decoded == []
    assert len(next(iter(pieces))) == len(decoded) == PIECE_RECORDS


def test_replay_skips_other_records(world: World) -> None:
    """
    Control batches and records without a key are not state.
    """
    world.partition.append(batch(is_control=True), Origin.COORDINATOR)
    world.partition.append(batch_of([Record(0, START_MS, None, b"value")]), Origin.COORDINATOR)
    world.write(b"a")
    assert world.keys() == [b"a"]


def test_snapshots_wait_until_they_are_committed(world: World) -> None:
    """
    A snapshot has the state when it was requested, and is stored once all its records are committed.
    """
    world.log.append([(b"a", b"1"), (b"b", b"2")])
    state: list[KeyValue] = [(b"a", b"1")]
    taken = world.log.snapshot(state)
    state.clear()
    world.log.append([(b"c", b"3")])
    world.partition.become_safe(1)
    assert not taken.called
    world.partition.become_safe(3)
    result(taken)
    assert result(world.snapshots.load()) == Snapshot(2, [(b"a", b"1")])
    assert world.partition.watching == 1  # the log itself


def test_cancelled_snapshots_are_not_stored(world: World) -> None:
    """
    Nothing waits for them either.
    """
    world.log.append([(b"a", b"1")])
    taken = world.log.snapshot([(b"a", b"1")])
    taken.cancel()
    with pytest.raises(CancelledError):
        result(taken)
    assert world.partition.watching == 1
    world.partition.become_safe(1)
    assert result(world.snapshots.load()) == Snapshot(0, [])


def test_lost_partitions_store_no_snapshot(world: World) -> None:
    """
    This node is no longer the coordinator.
    """
    world.log.append([(b"a", b"1")])
    taken = world.log.snapshot([(b"a", b"1")])
    world.partition.lose(LOST)
    world.partition.become_safe(1)
    assert str(refusal(lambda: taken)) == "NOT_COORDINATOR: node 2 has it"
    assert refusal(lambda: world.log.snapshot([])).code is ErrorCode.NOT_COORDINATOR
    assert world.partition.watching == 0
    assert result(world.snapshots.load()) == Snapshot(0, [])


def test_lost_partitions_refuse_appends_and_replays(world: World) -> None:
    """
    A node that no longer leads the partition is no longer its coordinator: the client looks for another.
    """
    world.write(b"a")
    replay = world.log.replay()
    world.partition.lose(LOST)
    assert str(refusal(lambda: world.log.append([(b"b", b"2")]))) == "NOT_COORDINATOR: node 2 has it"
    assert str(refusal(world.log.replay)) == "NOT_COORDINATOR: node 2 has it"
    assert not replay.called


def test_appends_without_a_leader_answer_not_coordinator(world: World) -> None:
    appended = world.log.append([(b"a", b"1")])
    assert appended.stored
    assert appended.committed
    appended.stored.errback(LOST)
    appended.committed.errback(LOST)
    for waited in (appended.stored, appended.committed):
        assert str(refusal(lambda waited=waited: waited)) == "NOT_COORDINATOR: node 2 has it"  # type: ignore[misc]


def test_other_errors_are_passed_on(world: World) -> None:
    """
    A full disk and a bug keep their own errors.
    """
    full = KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "the disk is full")
    later = world.log.append([(b"a", b"1")]).committed
    assert later
    later.errback(full)
    assert refusal(lambda: later).code is ErrorCode.KAFKA_STORAGE_ERROR
    later = world.log.append([(b"a", b"1")]).committed
    assert later
    later.errback(ZeroDivisionError())
    with pytest.raises(ZeroDivisionError):
        result(later)
    world.partition.lose(full)
    assert refusal(lambda: world.log.append([(b"b", b"2")])).code is ErrorCode.KAFKA_STORAGE_ERROR


def test_appends_are_limited_by_the_topic(world: World) -> None:
    """
    Records larger than a batch are refused before anything is written; many small ones are accepted.
    """
    size = world.partition.topic.config.max_message_bytes
    before = world.partition.log_end
    error = refusal(lambda: world.log.append([(b"a", b"1"), (b"key", bytes(size - 2))]))
    assert error.code is ErrorCode.MESSAGE_TOO_LARGE
    assert world.partition.log_end == before
    world.log.append([(b"key", bytes(size - 3))] * 2)
    assert world.partition.log_end == before + 2


def test_loss_is_reported_once(world: World) -> None:
    """
    A listener is called once, even if added after the loss or if the partition is woken again.
    """
    heard: list[str] = []
    world.log.on_lost(lambda: heard.append("early"))
    world.log.on_lost(lambda: heard.append("cancelled"))()
    world.write(b"a")
    assert heard == []
    world.partition.lose(LOST)
    assert heard == ["early"]
    world.log.on_lost(lambda: heard.append("late"))
    world.partition.become_safe(1)
    assert heard == ["early", "late"]


class Transacting:
    """
    A state log of an in-memory partition, and its producers.
    """

    def __init__(self) -> None:
        self.world = MemoryWorld(lambda now_ms, expiry_ms: MemoryBroker(now_ms=now_ms, producer_expiry_ms=expiry_ms))
        self.log = self.world.state_log("g")

    def put(self, key: bytes, value: bytes | None, producer: int | None = None) -> None:
        self.log.append([(key, value)], None if producer is None else (producer, 0))

    def end(self, producer: int, *, commits: bool) -> None:
        topic = self.world.broker.view().topics["__consumer_offsets"]
        partition = self.world.broker.partition(topic.id, self.log.index)
        partition.append(marker_batch(producer, 0, Marker(commits, 0), START_MS), Origin.COORDINATOR)

    def replayed(self) -> tuple[dict[bytes, bytes | None], list[tuple[int, bytes, bytes | None]]]:
        replay = result(self.log.replay())
        return dict(pair for piece in replay for pair in piece), list(replay.undecided)


def test_transactional_records_count_once_committed() -> None:
    """
    Open ones are replayed separately, aborted ones not at all.
    """
    here = Transacting()
    here.put(b"a", b"1")
    for producer in (7, 8, 9):
        here.put(b"a", b"of %d" % producer, producer)
    assert here.replayed() == ({b"a": b"1"}, [(number, b"a", b"of %d" % number) for number in (7, 8, 9)])
    here.end(7, commits=True)
    here.end(8, commits=False)
    assert here.replayed() == ({b"a": b"of 7"}, [(9, b"a", b"of 9")])
    here.put(b"a", b"2")
    assert here.replayed() == ({b"a": b"2"}, [(9, b"a", None)])
    here.end(9, commits=True)
    assert here.replayed() == ({b"a": b"2"}, [])


def test_deletions_drop_open_transactions() -> None:
    """
    A later marker does not bring their records back, and nothing waits for it.
    """
    here = Transacting()
    here.put(b"a", b"1", 7)
    here.put(b"a", None)
    assert here.replayed() == ({b"a": None}, [])
    here.end(7, commits=True)
    assert here.replayed() == ({b"a": None}, [])


def test_snapshots_exclude_open_transactions() -> None:
    """
    The replay behind a snapshot still has their records.
    """
    here = Transacting()
    here.put(b"a", b"1")
    here.put(b"b", b"2", 7)
    here.put(b"c", b"3")
    result(here.log.snapshot([(b"a", b"1"), (b"c", b"3")]))
    assert here.replayed() == ({b"a": b"1", b"c": b"3"}, [(7, b"b", b"2")])
    here.end(7, commits=True)
    assert here.replayed()[0] == {b"a": b"1", b"b": b"2", b"c": b"3"}
