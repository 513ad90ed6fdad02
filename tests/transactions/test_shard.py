"""
The transactional ids of one state log: how they are loaded and written, and how their transactions end.
"""

import gc
from typing import Any, cast

import pytest
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.logger import capturedLogs

from kgateway.config.settings import Settings
from kgateway.context import GatewayParts
from kgateway.coordination import shard as coordinator_shard
from kgateway.coordination.shard import CoordinatorShard
from kgateway.interfaces import IBroker, IStateLog
from kgateway.security.authorizer import AllowAll
from kgateway.topic_partition import TopicPartition
from kgateway.transactions.markers import FIRST_PAUSE_S, MarkerSender
from kgateway.transactions.records import decoded, encoded, tombstone
from kgateway.transactions.shard import TransactionShard
from kgateway.transactions.state import Transaction, TransactionState
from kgateway.wire.errors import ErrorCode, KafkaError
from tests.broker.behaviour import START_MS, refusal, result
from tests.transactions.simulated_broker import HERE, THERE, SimulatedBroker
from tests.transactions.transaction_world import T0, T1, T2, transaction

PREPARED = transaction(state=TransactionState.PREPARE_COMMIT, partitions=frozenset({T0, T1}), client_version=2)


class World:
    """
    A shard over a log with these records.
    """

    def __init__(self, *written: Transaction, leaders: tuple[int, ...] = (HERE, HERE, HERE)) -> None:
        self.clock = Clock()
        self.broker = SimulatedBroker(leaders)
        self.log = self.broker.state
        self.log.epoch = 9
        self.log.entries += [encoded(one) for one in written]
        parts = GatewayParts(cast(IBroker, self.broker), Settings(), AllowAll(), self.clock, lambda: START_MS)
        self.ended: list[CoordinatorShard] = []
        self.shard = TransactionShard(cast(IStateLog, self.log), parts, MarkerSender(parts), self.ended.append)

    def started(self) -> "World":
        self.shard.start()
        self.clock.pump([0] * 100)
        return self

    def turn(self) -> None:
        """
        Run one turn of the reactor.
        """
        call = self.clock.calls.pop(0)
        call.called = 1
        call.func(*call.args)

    def written(self) -> list[int]:
        """
        The number of markers in each partition.
        """
        return [len(partition.entries) for partition in self.broker.partitions]

    def states(self) -> list[str | None]:
        """
        The states in all records of the log.
        """
        found = [decoded(key, value) if value else None for key, value in self.log.entries]
        return [one.state.label if one else None for one in found]

    def state(self, name: str = "a") -> str | None:
        found = self.shard.get(name)
        return found.state.label if found else None


def test_a_change_counts_once_committed() -> None:
    """
    Until then other changes are refused with CONCURRENT_TRANSACTIONS.
    """
    world = World(transaction()).started()
    world.log.is_slow = True
    written = world.shard.write(transaction(state=TransactionState.ONGOING, partitions=frozenset({T0})))
    assert (world.state(), world.states()) == ("Empty", ["Empty", "Ongoing"])
    error = refusal(lambda: world.shard.get_for_update("a"))
    assert (error.code, error.message) == (ErrorCode.CONCURRENT_TRANSACTIONS, "a is about to be Ongoing")
    assert world.shard.get_for_update("b") is None
    world.log.settle()
    result(cast(Deferred[None], written))
    found = world.shard.get_for_update("a")
    assert found
    assert found.state is TransactionState.ONGOING


def test_a_new_id_is_pending_until_committed() -> None:
    world = World().started()
    world.log.is_slow = True
    world.shard.write(transaction())
    assert world.shard.get("a") is None
    assert refusal(lambda: world.shard.get_for_update("a")).code is ErrorCode.CONCURRENT_TRANSACTIONS
    world.log.settle()
    assert world.shard.get_for_update("a")


def test_a_failed_change_does_not_count() -> None:
    """
    It may fail at once or later; the next one may succeed.
    """
    world = World(transaction()).started()
    world.log.error = KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "full")
    assert refusal(lambda: world.shard.write(PREPARED)).code is ErrorCode.NOT_COORDINATOR
    world.log.error, world.log.is_slow = None, True
    written = world.shard.write(PREPARED)
    world.log.settle(KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND, "few"))
    assert refusal(lambda: written).code is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert (world.state(), world.written()) == ("Empty", [0, 0, 0])
    world.log.is_slow = False
    assert world.shard.write(PREPARED) is None
    assert world.written() == [1, 1, 0]


def test_a_write_continues_without_its_client() -> None:
    world = World(transaction()).started()
    world.log.is_slow = True
    written = cast(Deferred[None], world.shard.write(PREPARED))
    written.addErrback(lambda _: None)
    written.cancel()
    world.log.settle()
    world.log.settle()
    assert (world.state(), world.written()) == ("CompleteCommit", [1, 1, 0])


def test_markers_follow_the_committed_decision() -> None:
    """
    No marker is written before the decision is committed, and the transaction is complete after the last marker.
    """
    world = World(transaction()).started()
    world.log.is_slow = world.broker.partitions[0].is_slow = True
    world.shard.write(PREPARED)
    assert world.written() == [0, 0, 0]
    world.log.settle()
    assert (world.written(), world.states()) == ([1, 1, 0], ["Empty", "PrepareCommit"])
    world.broker.partitions[0].settle()
    assert world.states() == ["Empty", "PrepareCommit", "CompleteCommit"]
    assert world.state() == "PrepareCommit"
    world.log.settle()
    assert world.state() == "CompleteCommit"
    assert world.written() == [1, 1, 0]
    assert world.shard._endings == {}  # nothing is kept of it


def test_markers_have_the_epoch_of_the_log() -> None:
    """
    They have the producer's epoch, too.
    """
    world = World(leaders=(THERE, THERE, THERE)).started()
    world.shard.write(PREPARED)
    ((_, request, _),) = world.broker.peers.asked
    (marker,) = cast(Any, request).markers
    told = (marker.producer_id, marker.producer_epoch, marker.transaction_result)
    assert (*told, marker.coordinator_epoch, marker.transaction_version) == (7, 3, True, 9, 2)


def test_marked_partitions_are_removed() -> None:
    """
    While markers are written, the transaction shows the partitions without one.
    """
    world = World().started()
    world.broker.partitions[1].error = KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "not now")
    world.shard.write(PREPARED)
    found = world.shard.get("a")
    assert found
    assert found.partitions == {T1}
    world.broker.partitions[1].error = None
    world.clock.advance(FIRST_PAUSE_S)
    assert world.state() == "CompleteCommit"


def test_a_failed_completion_is_retried() -> None:
    """
    It is written again until committed; the partitions get no second marker.
    """
    world = World().started()
    log = world.broker.partitions[0]
    log.is_slow = True
    world.shard.write(PREPARED)
    world.log.error = KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "full")
    with capturedLogs() as logged:
        log.settle()
    assert [event["log_level"].name for event in logged] == ["warn"]
    world.log.error, world.log.is_slow = None, True
    world.clock.advance(FIRST_PAUSE_S)
    world.log.settle(KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "full"))
    assert world.state() == "PrepareCommit"
    world.clock.advance(2 * FIRST_PAUSE_S)
    world.log.settle()
    assert (world.state(), world.written()) == ("CompleteCommit", [1, 1, 0])
    assert world.clock.getDelayedCalls() == []


@pytest.mark.parametrize("commits", [True, False])
def test_prepared_transactions_are_completed_after_a_load(commits: bool) -> None:
    """
    This includes ids without any request.
    """
    state = TransactionState.PREPARE_COMMIT if commits else TransactionState.PREPARE_ABORT
    prepared = transaction(state=state, partitions=frozenset({T0, T1}))
    world = World(transaction(), prepared).started()
    assert (world.written(), world.state()) == ([1, 1, 0], "CompleteCommit" if commits else "CompleteAbort")
    assert world.states()[2:] == [world.state()]


def test_transactions_are_completed_in_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Other requests are served in between.
    """
    monkeypatch.setattr("kgateway.transactions.shard.PIECE", 2)
    names = "abcde"
    ending = [_prepared(name) for name in names]
    world = World(*ending)
    world.shard.start()
    seen = set()
    while world.clock.getDelayedCalls():
        if world.shard.is_serving:
            seen.add(sum(world.state(name) == "CompleteCommit" for name in names))
        world.turn()
    assert seen == {2, 4}
    assert world.written() == [5, 0, 0]


def _prepared(name: str) -> Transaction:
    return Transaction(
        transactional_id=name,
        producer_id=7,
        epoch=1,
        timeout_ms=1,
        updated_ms=1,
        state=TransactionState.PREPARE_COMMIT,
        partitions=frozenset({T0}),
    )


def test_other_states_survive_a_load() -> None:
    """
    An open transaction is still open, and a complete one complete.
    """
    partitions = frozenset({T0})
    for state in (
        TransactionState.EMPTY,
        TransactionState.ONGOING,
        TransactionState.COMPLETE_COMMIT,
        TransactionState.COMPLETE_ABORT,
    ):
        world = World(transaction(state=state, partitions=partitions)).started()
        assert (world.state(), world.written()) == (state.label, [0, 0, 0])


def test_unknown_records_are_kept() -> None:
    """
    Unknown and damaged records are skipped, and are in the next snapshot.
    """
    world = World(transaction())
    strange = [(b"\0\x63 strange", b"value"), (b"\0\0 damaged", b"value")]
    world.log.entries += strange
    with capturedLogs() as logged:
        world.started()
    assert [event["log_level"].name for event in logged] == ["debug", "warn", "info"]
    assert (logged[-1]["things"], logged[-1]["records"]) == ("1 transactional id", "3 records")
    world.shard._take_snapshot()
    assert world.log.snapshots == [[encoded(transaction()), *strange]]


def test_snapshots_have_the_last_values(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    They have nothing of a forgotten id.
    """
    monkeypatch.setattr(coordinator_shard, "SNAPSHOT_RECORDS", 4)
    world = World().started()
    world.shard.write(transaction())
    world.shard.write(_prepared("b"))
    assert world.log.snapshots == []
    world.shard.delete("a")
    (snapshot,) = world.log.snapshots
    assert [key for key, _ in snapshot] == [tombstone("b")[0]]


def test_an_id_is_known_until_its_tombstone_is_committed() -> None:
    """
    No producer begins with it meanwhile.
    """
    world = World(transaction()).started()
    world.log.is_slow = True
    world.shard.delete("a")
    assert refusal(lambda: world.shard.get_for_update("a")).message == "a is about to be Dead"
    assert world.state() == "Empty"
    world.log.settle()
    assert world.shard.get_for_update("a") is None
    assert world.states() == ["Empty", None]


def test_a_lost_log_ends_markers() -> None:
    """
    No timer is left.
    """
    world = World().started()
    world.broker.partitions[0].error = KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "not now")
    world.shard.write(PREPARED)
    with capturedLogs() as logged:
        world.log.lose()
        world.shard.stop()
    assert logged == []
    assert world.clock.getDelayedCalls() == []
    assert world.ended == [world.shard]
    assert not world.shard.transactions
    for ask in (
        lambda: world.shard.get_for_update("a"),
        lambda: world.shard.get("a"),
        lambda: world.shard.write(PREPARED),
    ):
        assert refusal(ask).code is ErrorCode.NOT_COORDINATOR


def test_a_decision_committed_after_the_loss() -> None:
    """
    Another coordinator completes it.
    """
    world = World().started()
    world.log.is_slow = True
    written = cast(Deferred[None], world.shard.write(PREPARED))
    world.log.lose()
    world.log.settle()
    result(written)
    assert world.written() == [0, 0, 0]


def test_a_loss_ends_the_completion(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Prepared transactions that were not reached are left as they are.
    """
    monkeypatch.setattr("kgateway.transactions.shard.PIECE", 1)
    world = World(_prepared("a"), _prepared("b"))
    world.shard.start()
    while not world.shard.is_serving:
        world.turn()
    assert world.written() == [1, 0, 0]
    world.log.lose()
    world.clock.advance(60)
    assert world.written() == [1, 0, 0]
    with capturedLogs() as logged:
        del world
        gc.collect()
    assert logged == []  # there is no unhandled failure


def test_an_unfinished_load_completes_nothing() -> None:
    world = World(_prepared("a"), _prepared("b"))
    world.shard.start()
    loaded = world.shard.when_loaded()
    world.log.lose()
    result(loaded)
    world.clock.advance(60)
    assert world.written() == [0, 0, 0]
    assert refusal(world.shard.check).code is ErrorCode.NOT_COORDINATOR


def test_a_partition_with_a_later_coordinator() -> None:
    """
    It is logged, and the transaction is left to that coordinator.
    """
    world = World().started()
    world.broker.partitions[0].error = KafkaError(ErrorCode.TRANSACTION_COORDINATOR_FENCED, "epoch 10")
    with capturedLogs() as logged:
        world.shard.write(PREPARED)
    assert ["cannot end" in event["log_format"] for event in logged] == [True]
    world.clock.advance(60)
    assert (world.state(), world.states()) == ("PrepareCommit", ["PrepareCommit"])


def test_a_bug_is_logged() -> None:
    """
    It costs one transaction its end, not the client its answer.
    """
    world = World().started()
    world.broker.partition = None  # type: ignore[assignment, method-assign]
    with capturedLogs() as logged:
        assert world.shard.write(PREPARED) is None
    assert [event["log_level"].name for event in logged] == ["critical"]


def test_producer_ids_are_fetched_only_when_needed() -> None:
    world = World().started()
    for now, needed in ((None, True), (transaction(epoch=32_765), False), (transaction(epoch=32_766), True)):
        found = result(Deferred.fromCoroutine(world.shard.new_producer_id(now)))
        assert (found > 0) == needed


def test_a_transaction_without_partitions_is_complete_at_once() -> None:
    world = World().started()
    world.shard.write(
        transaction(state=TransactionState.PREPARE_ABORT, partitions=frozenset({TopicPartition("gone", 0), T2} - {T2}))
    )
    assert world.state() == "CompleteAbort"
