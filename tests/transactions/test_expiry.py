"""
The expiry of transactions and of transactional ids.
"""

from typing import Any, cast

import pytest
from twisted.internet.defer import Deferred
from twisted.logger import capturedLogs

from kgateway.interfaces import IBroker, KeyValue
from kgateway.security.permissions import Resource
from kgateway.transactions.records import encoded
from kgateway.transactions.state import LAST_EPOCH, ProducerIdAndEpoch, TransactionState
from kgateway.wire.errors import ErrorCode, KafkaError
from tests.broker.behaviour import START_MS
from tests.transactions.simulated_broker import SimulatedBroker
from tests.transactions.transaction_world import OLD, T0, TIMEOUT_MS, TransactionWorld, transaction

CHECK_S, HOUR_S, WEEK_S = 10, 3_600, 7 * 24 * 3_600


@pytest.fixture
def world() -> TransactionWorld:
    return TransactionWorld()


def test_a_late_transaction_is_aborted(world: TransactionWorld) -> None:
    """
    It is aborted in a new epoch after its timeout, and the log says why.
    """
    me = world.init()
    world.add(me)
    world.clock.pump([CHECK_S] * 6)
    assert world.state() == "Ongoing"
    with capturedLogs() as logged:
        world.clock.advance(CHECK_S)
    assert world.state() == "CompleteAbort"
    assert world.markers(T0) == [(me.producer_id, 1, False, 0)]
    (event,) = logged
    told = {name: event[name] for name in ("id", "open_ms", "timeout_ms", "producer")}
    assert told == {"id": "a", "open_ms": 70_000, "timeout_ms": TIMEOUT_MS, "producer": me}
    assert event["log_level"].name == "warn"
    assert world.refused(lambda: world.add(me)) == "PRODUCER_FENCED"
    assert world.refused(lambda: world.end(me, True)) == "INVALID_TXN_STATE"
    assert world.refused(lambda: world.end(me, True, OLD)) == "PRODUCER_FENCED"
    assert world.end(me, False) == (me.producer_id, 1)


def test_a_late_transaction_in_the_last_epoch(world: TransactionWorld) -> None:
    """
    It is aborted as others are, and the next one has another producer id.
    """
    ongoing = transaction(
        epoch=LAST_EPOCH, state=TransactionState.ONGOING, partitions=frozenset({T0}), started_ms=START_MS
    )
    world.found(ongoing)
    world.clock.pump([CHECK_S] * 7)
    assert world.markers(T0) == [(7, LAST_EPOCH + 1, False, 0)]
    assert world.transactions.describe("a").producer == (0, 0)
    assert world.init() == (0, 1)


def test_an_ended_transaction_is_not_aborted(world: TransactionWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    The client may end it while a producer id is fetched for the abort.
    """
    ongoing = transaction(
        epoch=LAST_EPOCH, state=TransactionState.ONGOING, partitions=frozenset({T0}), started_ms=START_MS
    )
    world.found(ongoing)
    waiting: list[Deferred[int]] = []

    def later() -> Deferred[int]:
        waiting.append(Deferred())
        return waiting[-1]

    monkeypatch.setattr(world.broker, "new_producer_id", later)
    world.clock.pump([CHECK_S] * 7)
    asked = Deferred.fromCoroutine(world.transactions.end("a", ProducerIdAndEpoch(7, LAST_EPOCH), True, 5))
    for number in (1, 0):
        waiting[number].callback(number + 50)
    assert asked.result == (51, 0)
    assert world.state() == "CompleteCommit"
    assert len(world.markers(T0)) == 1


def test_unused_ids_expire(world: TransactionWorld) -> None:
    """
    An id is forgotten after a week without use, also by the next load.
    """
    world.init()
    kept = world.init(name="kept")
    world.clock.pump([HOUR_S] * (WEEK_S // HOUR_S - 1))
    world.init(kept, name="kept")
    assert world.state() == "Empty"
    with capturedLogs() as logged:
        world.clock.advance(HOUR_S)
    assert [(event["id"], event["unused_ms"]) for event in logged] == [("a", WEEK_S * 1000)]
    for _ in range(2):
        assert world.refused(world.state) == "TRANSACTIONAL_ID_NOT_FOUND"
        assert world.state("kept") == "Empty"
        world.again()
    assert world.init().epoch == 0


@pytest.mark.parametrize("what", ["late", "unused"])
def test_a_failed_write_is_retried_in_the_next_round(
    world: TransactionWorld, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """
    It does not hold up other logs.
    """
    for name in ("a", "b"):
        me = world.init(name=name)
        if what == "late":
            world.add(me, name=name)
    log: Any = world.broker.coordinator(Resource.TRANSACTIONAL_ID, "a")
    append = log.append

    def full(records: list[KeyValue], producer: None) -> Any:
        if any(b"a" in key for key, _ in records):
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "full")
        return append(records)

    step_s, rounds = (CHECK_S, 7) if what == "late" else (HOUR_S, WEEK_S // HOUR_S)
    done = {"late": lambda name: world.state(name) == "CompleteAbort", "unused": lambda name: _is_unknown(world, name)}
    with monkeypatch.context() as patched, capturedLogs() as logged:
        patched.setattr(log, "append", full)
        world.clock.pump([step_s] * rounds)
    assert "cannot expire the id or abort" in logged[0]["log_format"]
    assert (done[what]("a"), done[what]("b")) == (False, True)
    world.clock.advance(step_s)
    assert done[what]("a")


def test_an_abort_that_fails_later_is_retried() -> None:
    """
    The failure is logged.
    """
    broker = SimulatedBroker()
    broker.state.entries.append(
        encoded(transaction(state=TransactionState.ONGOING, partitions=frozenset({T0}), started_ms=START_MS))
    )
    world = TransactionWorld(lambda _: cast(IBroker, broker))
    broker.state.is_slow = True
    world.clock.pump([CHECK_S] * 7)
    with capturedLogs() as logged:
        broker.state.settle(KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "full"))
    assert [event["log_format"] for event in logged] == ["the write of a transaction failed"]
    assert world.state() == "Ongoing"
    world.clock.advance(CHECK_S)
    broker.state.settle_all()
    assert world.state() == "CompleteAbort"


def _is_unknown(world: TransactionWorld, name: str) -> bool:
    try:
        world.state(name)
    except KafkaError as error:
        return error.code is ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
    return False


def test_an_unavailable_log_is_loaded_later(world: TransactionWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Prepared transactions are completed once their log is available, without any request.
    """
    world.init()
    world.parts.stop()
    log: Any = world.broker.coordinator(Resource.TRANSACTIONAL_ID, "a")
    coordinators, coordinator = world.broker.coordinators, world.broker.coordinator

    def not_yet(*_: object) -> Any:
        raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "it is being looked through")

    for name in ("coordinators", "coordinator"):
        monkeypatch.setattr(world.broker, name, not_yet)
    world.start()
    assert world.refused(world.state) == "NOT_COORDINATOR"
    replayed: list[object] = []
    replay = log.replay

    def noted() -> Any:
        replayed.append(log)
        return replay()

    monkeypatch.setattr(log, "replay", noted)
    monkeypatch.setattr(world.broker, "coordinators", coordinators)
    world.clock.advance(CHECK_S)
    assert replayed == [log]
    monkeypatch.setattr(world.broker, "coordinator", coordinator)
    assert world.state() == "Empty"
