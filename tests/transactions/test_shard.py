"""
The transactional ids of one state log: how they are loaded, written and kept, and how they go on.
"""

import gc
from typing import Any, cast

import pytest
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.logger import capturedLogs

from kgateway.config.settings import Settings
from kgateway.context import GatewayParts
from kgateway.coordinating import state_shard
from kgateway.coordinating.state_shard import StateShard
from kgateway.interfaces import IBroker, IStateLog
from kgateway.security.authorizer import AllowAll
from kgateway.transactions.coding import decoded, encoded, tombstone
from kgateway.transactions.sending import FIRST_PAUSE_S, Sender
from kgateway.transactions.shard import TransactionShard
from kgateway.transactions.state import Place, State, Transaction
from kgateway.wire.errors import ErrorCode, KafkaError
from tests.broker.behaviour import START_MS, refusal, result
from tests.transactions.simulated import HERE, THERE, SimulatedBroker
from tests.transactions.transacting import T0, T1, T2, transaction

PREPARED = transaction(state=State.PREPARE_COMMIT, places=frozenset({T0, T1}), client_version=2)


class World:
    """
    A shard over a log in which this is written.
    """

    def __init__(self, *written: Transaction, leaders: tuple[int, ...] = (HERE, HERE, HERE)) -> None:
        self.clock = Clock()
        self.broker = SimulatedBroker(leaders)
        self.log = self.broker.state
        self.log.epoch = 9
        self.log.entries += [encoded(one) for one in written]
        parts = GatewayParts(cast(IBroker, self.broker), Settings(), AllowAll(), self.clock, lambda: START_MS)
        self.ended: list[StateShard] = []
        self.shard = TransactionShard(cast(IStateLog, self.log), parts, Sender(parts), self.ended.append)

    def started(self) -> "World":
        self.shard.start()
        self.clock.pump([0] * 100)
        return self

    def turn(self) -> None:
        """
        One turn of the reactor.
        """
        call = self.clock.calls.pop(0)
        call.called = 1
        call.func(*call.args)

    def written(self) -> list[int]:
        """
        How many markers each partition has.
        """
        return [len(partition.entries) for partition in self.broker.partitions]

    def states(self) -> list[str | None]:
        """
        Of all records in the log.
        """
        found = [decoded(key, value) if value else None for key, value in self.log.entries]
        return [one.state.label if one else None for one in found]

    def state(self, name: str = "a") -> str | None:
        found = self.shard.look(name)
        return found.state.label if found else None


def test_write() -> None:
    """
    What is written is known when it is safe; until then whoever would change it is told to ask again.
    """
    world = World(transaction()).started()
    world.log.is_slow = True
    written = world.shard.write(transaction(state=State.ONGOING, places=frozenset({T0})))
    assert (world.state(), world.states()) == ("Empty", ["Empty", "Ongoing"])
    error = refusal(lambda: world.shard.find("a"))
    assert (error.code, error.message) == (ErrorCode.CONCURRENT_TRANSACTIONS, "a is about to be Ongoing")
    assert world.shard.find("b") is None
    world.log.settle()
    result(cast(Deferred[None], written))
    found = world.shard.find("a")
    assert found
    assert found.state is State.ONGOING


def test_a_new_id_is_pending_too() -> None:
    """
    Though nothing is known of it yet.
    """
    world = World().started()
    world.log.is_slow = True
    world.shard.write(transaction())
    assert world.shard.look("a") is None
    assert refusal(lambda: world.shard.find("a")).code is ErrorCode.CONCURRENT_TRANSACTIONS
    world.log.settle()
    assert world.shard.find("a")


def test_write_that_fails() -> None:
    """
    What is not safe does not count, whether it is refused at once or later; the next one may.
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


def test_a_client_that_does_not_wait() -> None:
    """
    What is written goes on where its client has gone.
    """
    world = World(transaction()).started()
    world.log.is_slow = True
    written = cast(Deferred[None], world.shard.write(PREPARED))
    written.addErrback(lambda _: None)
    written.cancel()
    world.log.settle()
    world.log.settle()
    assert (world.state(), world.written()) == ("CompleteCommit", [1, 1, 0])


def test_partitions_hear_of_what_is_safe() -> None:
    """
    No marker is written before the decision is safe, and it is not complete before all markers are.
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
    assert world.shard._ending == {}  # nothing is kept of it


def test_markers_are_of_the_coordinator() -> None:
    """
    They have the epoch of the log, and what the transaction has.
    """
    world = World(leaders=(THERE, THERE, THERE)).started()
    world.shard.write(PREPARED)
    ((_, request, _),) = world.broker.peers.asked
    (marker,) = cast(Any, request).markers
    told = (marker.producer_id, marker.producer_epoch, marker.transaction_result)
    assert (*told, marker.coordinator_epoch, marker.transaction_version) == (7, 3, True, 9, 2)


def test_partitions_that_are_told_are_left_out() -> None:
    """
    Who looks while partitions are being told sees those that are not.
    """
    world = World().started()
    world.broker.partitions[1].error = KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "not now")
    world.shard.write(PREPARED)
    found = world.shard.look("a")
    assert found
    assert found.places == {T1}
    world.broker.partitions[1].error = None
    world.clock.advance(FIRST_PAUSE_S)
    assert world.state() == "CompleteCommit"


def test_completing_that_fails() -> None:
    """
    That all are told is written again until it is safe; the partitions are not told again.
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
def test_loaded_transactions_go_on(commits: bool) -> None:
    """
    What was decided is told to the partitions after a restart, of ids that nobody asks for, too.
    """
    state = State.PREPARE_COMMIT if commits else State.PREPARE_ABORT
    prepared = transaction(state=state, places=frozenset({T0, T1}))
    world = World(transaction(), prepared).started()
    assert (world.written(), world.state()) == ([1, 1, 0], "CompleteCommit" if commits else "CompleteAbort")
    assert world.states()[2:] == [world.state()]


def test_loaded_transactions_go_on_by_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    So many a turn; and others are served meanwhile.
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
        state=State.PREPARE_COMMIT,
        places=frozenset({T0}),
    )


def test_other_states_are_left_as_they_are() -> None:
    """
    An open transaction stays open after a restart, and one that is over stays over.
    """
    places = frozenset({T0})
    for state in (State.EMPTY, State.ONGOING, State.COMPLETE_COMMIT, State.COMPLETE_ABORT):
        world = World(transaction(state=state, places=places)).started()
        assert (world.state(), world.written()) == (state.label, [0, 0, 0])


def test_what_is_not_understood_is_kept() -> None:
    """
    Records of unknown kinds and damaged ones are passed over, and are in the next snapshot.
    """
    world = World(transaction())
    strange = [(b"\0\x63 strange", b"value"), (b"\0\0 damaged", b"value")]
    world.log.entries += strange
    with capturedLogs() as logged:
        world.started()
    assert [event["log_level"].name for event in logged] == ["debug", "warn", "info"]
    assert (logged[-1]["count"], logged[-1]["records"], logged[-1]["things"]) == (1, 3, "transactional ids")
    world.shard._take_snapshot()
    assert world.log.snapshots == [[encoded(transaction()), *strange]]


def test_snapshots(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    A snapshot has the last word on each id, and nothing of one that is forgotten.
    """
    monkeypatch.setattr(state_shard, "SNAPSHOT_RECORDS", 4)
    world = World().started()
    world.shard.write(transaction())
    world.shard.write(_prepared("b"))
    assert world.log.snapshots == []
    world.shard.forget("a")
    (snapshot,) = world.log.snapshots
    assert [key for key, _ in snapshot] == [tombstone("b")[0]]


def test_forget() -> None:
    """
    An id is known until it is safe that it is not; meanwhile nobody begins with it.
    """
    world = World(transaction()).started()
    world.log.is_slow = True
    world.shard.forget("a")
    assert refusal(lambda: world.shard.find("a")).message == "a is about to be Dead"
    assert world.state() == "Empty"
    world.log.settle()
    assert world.shard.find("a") is None
    assert world.states() == ["Empty", None]


def test_lost() -> None:
    """
    Who has lost the log tells no partition anything any more, and leaves no timers.
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
    for ask in (lambda: world.shard.find("a"), lambda: world.shard.look("a"), lambda: world.shard.write(PREPARED)):
        assert refusal(ask).code is ErrorCode.NOT_COORDINATOR


def test_lost_before_it_is_safe() -> None:
    """
    What becomes safe later is for another coordinator to go on with.
    """
    world = World().started()
    world.log.is_slow = True
    written = cast(Deferred[None], world.shard.write(PREPARED))
    world.log.lose()
    world.log.settle()
    result(written)
    assert world.written() == [0, 0, 0]


def test_lost_while_it_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Those that were prepared and not reached yet are left.
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
    assert logged == []  # no failure that nobody has heard of


def test_lost_while_loading() -> None:
    """
    Nothing goes on that was not loaded to the end.
    """
    world = World(_prepared("a"), _prepared("b"))
    world.shard.start()
    loaded = world.shard.when_loaded()
    world.log.lose()
    result(loaded)
    world.clock.advance(60)
    assert world.written() == [0, 0, 0]
    assert refusal(world.shard.check).code is ErrorCode.NOT_COORDINATOR


def test_a_partition_that_knows_better() -> None:
    """
    Where another coordinator has told a partition, this one says so in its log, and leaves the transaction to that.
    """
    world = World().started()
    world.broker.partitions[0].error = KafkaError(ErrorCode.TRANSACTION_COORDINATOR_FENCED, "epoch 10")
    with capturedLogs() as logged:
        world.shard.write(PREPARED)
    assert ["cannot be ended" in event["log_format"] for event in logged] == [True]
    world.clock.advance(60)
    assert (world.state(), world.states()) == ("PrepareCommit", ["PrepareCommit"])


def test_a_bug_is_told() -> None:
    """
    And costs one transaction its end, not the client its answer.
    """
    world = World().started()
    world.broker.partition = None  # type: ignore[assignment, method-assign]
    with capturedLogs() as logged:
        assert world.shard.write(PREPARED) is None
    assert [event["log_level"].name for event in logged] == ["critical"]


def test_fresh_ids() -> None:
    """
    A producer id is fetched where one may be needed, and only there.
    """
    world = World().started()
    for now, needed in ((None, True), (transaction(epoch=32_765), False), (transaction(epoch=32_766), True)):
        found = result(Deferred.fromCoroutine(world.shard.fresh_id(now)))
        assert (found > 0) == needed


def test_places_elsewhere() -> None:
    """
    A transaction that has nothing to tell is complete at once.
    """
    world = World().started()
    world.shard.write(transaction(state=State.PREPARE_ABORT, places=frozenset({Place("gone", 0), T2} - {T2})))
    assert world.state() == "CompleteAbort"
