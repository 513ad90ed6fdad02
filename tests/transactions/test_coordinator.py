"""
The transaction coordinator as handlers see it, over a real broker.
"""

from collections.abc import Coroutine
from typing import Any, cast

import pytest
from twisted.internet.defer import Deferred
from twisted.logger import capturedLogs, formatEvent

from kgateway.cluster.view import Node
from kgateway.interfaces import IBroker
from kgateway.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from kgateway.messages.end_txn import EndTxnRequest
from kgateway.security.permissions import Resource
from kgateway.topic_partition import TopicPartition
from kgateway.transactions import coordinator as telling
from kgateway.transactions.state import LAST_EPOCH, NO_ID, ProducerIdAndEpoch, Transaction, TransactionState
from kgateway.transactions.transaction_filter import TransactionFilter
from kgateway.wire.errors import ErrorCode, KafkaError
from tests.broker.behaviour import refusal, result
from tests.transactions.simulated_broker import SimulatedBroker
from tests.transactions.transaction_world import (
    ADD_VERSION,
    EACH,
    OLD,
    T0,
    T1,
    T2,
    TIMEOUT_MS,
    TransactionWorld,
    transaction,
)

WHO = ProducerIdAndEpoch(7, 3)


@pytest.fixture
def world() -> TransactionWorld:
    return TransactionWorld()


@pytest.mark.parametrize("commits", [True, False])
def test_a_transaction_with_its_own_epoch(world: TransactionWorld, commits: bool) -> None:
    """
    Every partition gets its marker in the epoch after the transaction's, which is then the producer's.
    """
    me = world.init()
    world.add(me, [T0])
    world.add(me, [T1])
    assert world.state() == "Ongoing"
    after = world.end(me, commits)
    assert after == (me.producer_id, 1)
    assert world.state() == ("CompleteCommit" if commits else "CompleteAbort")
    assert world.markers(T0) == world.markers(T1) == [(me.producer_id, 1, commits, 0)]
    assert world.markers(T2) == []
    assert sorted(world.told) == [(T0, me.producer_id, commits), (T1, me.producer_id, commits)]
    assert world.end(me, commits) == after
    assert len(world.told) == 2
    world.add(after)
    assert world.end(after, commits) == (me.producer_id, 2)


@pytest.mark.parametrize("commits", [True, False])
def test_transactions_that_share_an_epoch(world: TransactionWorld, commits: bool) -> None:
    """
    An old client writes all its transactions in its first epoch.
    """
    me = world.init()
    for count in (1, 2):
        world.add(me, [T0], OLD)
        assert world.end(me, commits, OLD) == me
        assert world.markers(T0) == [(*me, commits, 0)] * count


def test_a_new_producer_replaces_the_old_one(world: TransactionWorld) -> None:
    """
    It aborts the open transaction, retries, and gets an epoch that fences all earlier ones. The log does not say who it
    is, because `kgateway transactions abort` does the same.
    """
    old = world.init()
    world.add(old)
    with capturedLogs() as logged:
        assert world.refused(world.init) == "CONCURRENT_TRANSACTIONS"
    [line] = map(formatEvent, logged)
    reason = "because the transactional id was initialized again"
    assert line == f"a: aborting the transaction of {old}, {reason}"
    assert world.markers(T0) == [(old.producer_id, 1, False, 0)]
    new = world.init()
    assert new == (old.producer_id, 2)
    assert world.refused(lambda: world.add(old)) == "PRODUCER_FENCED"
    assert world.refused(lambda: world.init(old)) == "PRODUCER_FENCED"
    for spoken in (OLD, EACH):
        for commits in (True, False):
            assert world.refused(lambda s=spoken, c=commits: world.end(old, c, s)) == "PRODUCER_FENCED"  # type: ignore[misc]
    world.add(new)


def test_fenced_producers_are_logged_once(world: TransactionWorld) -> None:
    """
    The first refused request logs the reason, whichever that is.
    """
    old = world.init()
    new = world.init()
    with capturedLogs() as logged:
        for _ in range(3):
            assert world.refused(lambda: world.add(old)) == "PRODUCER_FENCED"
            assert world.refused(lambda: world.end(old, True)) == "PRODUCER_FENCED"
            assert world.refused(lambda: world.transactions.verify("a", old, {T0})) == "PRODUCER_FENCED"
    [event] = logged
    assert (event["id"], event["reason"].message) == ("a", f"{old} has been replaced by epoch {new.epoch}")


def test_the_fencing_log_is_bounded(world: TransactionWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Of many fenced producers the first ones are logged again.
    """
    monkeypatch.setattr(telling, "_REMEMBERED", 2)
    producers = [world.init() for _ in range(4)]
    with capturedLogs() as logged:
        for old in (*producers[:3], *producers[:3]):
            assert world.refused(lambda old=old: world.add(old)) == "PRODUCER_FENCED"  # type: ignore[misc]
    assert len(logged) == 6


def test_a_producer_that_names_itself_keeps_its_id(world: TransactionWorld) -> None:
    """
    It gets the next epoch.
    """
    me = world.init()
    assert world.init(me) == world.init(me) == (me.producer_id, 1)


def test_exhausted_epochs_need_a_new_producer_id(world: TransactionWorld) -> None:
    """
    The next transaction has it, and so has the next producer.
    """
    world.found(transaction(producer_id=1_000, epoch=LAST_EPOCH))
    me = ProducerIdAndEpoch(1_000, LAST_EPOCH)
    world.add(me)
    after = world.end(me, True)
    assert (after.producer_id != me.producer_id, after.epoch) == (True, 0)
    assert world.markers(T0) == [(me.producer_id, LAST_EPOCH + 1, True, 0)]
    assert world.end(me, True) == after
    assert world.transactions.describe("a").next_id == NO_ID


def test_old_versions_get_invalid_producer_epoch(world: TransactionWorld) -> None:
    """
    They do not know PRODUCER_FENCED.
    """
    world.init()
    me = world.init()
    old = ProducerIdAndEpoch(me.producer_id, 0)
    for version, code in ((3, "INVALID_PRODUCER_EPOCH"), (4, "PRODUCER_FENCED")):
        assert world.refused(lambda v=version: world.init(ProducerIdAndEpoch(8, 0), v)) == code  # type: ignore[misc]
    ask = world.transactions
    for version, code in ((1, "INVALID_PRODUCER_EPOCH"), (2, "PRODUCER_FENCED")):
        for call in (
            lambda v=version: ask.add_partitions("a", old, {T0}, v),
            lambda v=version: ask.add_offsets("a", old, "g", v),
            lambda v=version: ask.end("a", old, True, v),
        ):
            assert world.refused(lambda c=call: world.asked(c())) == code  # type: ignore[misc]


def test_newer_versions_have_an_epoch_per_transaction(world: TransactionWorld) -> None:
    for request, first in ((AddPartitionsToTxnRequest, 4), (EndTxnRequest, 5)):
        assert first in request.__spec__.versions
    me = world.init()
    world.asked(world.transactions.add_partitions("a", me, {T0}, 3))
    assert world.transactions.describe("a").client_version == OLD
    world.asked(world.transactions.add_partitions("a", me, {T1}, 4))
    assert world.transactions.describe("a").client_version == EACH
    assert world.asked(world.transactions.end("a", me, True, 4)) == me
    world.add(me)
    world.asked(world.transactions.add_offsets("a", me, "g", 4))
    assert world.transactions.describe("a").client_version == OLD
    assert world.asked(world.transactions.end("a", me, True, 5)).epoch == me.epoch + 1


@pytest.mark.parametrize(("timeout_ms", "code"), [(0, False), (1, True), (900_000, True), (900_001, False)])
def test_timeouts_are_limited(world: TransactionWorld, timeout_ms: int, code: bool) -> None:
    """
    A transaction may be open for a quarter of an hour.
    """
    asked = lambda: world.asked(world.transactions.init_producer("a", timeout_ms, None, 5))  # noqa: E731
    if code:
        asked()
    else:
        assert world.refused(asked) == "INVALID_TRANSACTION_TIMEOUT"
        assert world.refused(world.state) == "TRANSACTIONAL_ID_NOT_FOUND"


def test_unknown_ids_are_refused(world: TransactionWorld) -> None:
    """
    An id without a producer is unknown, and an empty one is invalid.
    """
    ask = world.transactions
    for name, code in (("b", "INVALID_PRODUCER_ID_MAPPING"), ("", "INVALID_REQUEST")):
        for call in (
            lambda n=name: world.asked(ask.add_partitions(n, WHO, {T0}, 3)),
            lambda n=name: world.asked(ask.add_offsets(n, WHO, "g", 3)),
            lambda n=name: world.asked(ask.end(n, WHO, True, 5)),
            lambda n=name: ask.verify(n, WHO, {T0}),
        ):
            assert world.refused(call) == code
    assert world.refused(lambda: world.init(name="")) == "INVALID_REQUEST"
    assert world.refused(lambda: ask.describe("")) == "INVALID_REQUEST"
    assert world.refused(lambda: ask.describe("b")) == "TRANSACTIONAL_ID_NOT_FOUND"


def test_unknown_ids_use_up_no_producer_id(world: TransactionWorld) -> None:
    """
    A refused end needs none.
    """
    before = world.init(name="x").producer_id
    assert world.refused(lambda: world.end(WHO, True, name="b")) == "INVALID_PRODUCER_ID_MAPPING"
    assert world.init(name="y").producer_id == before + 1


def test_verification_answers_for_each_partition(world: TransactionWorld) -> None:
    """
    A partition leader is told which partitions were added.
    """
    me = world.init()
    world.add(me, [T0])
    assert world.transactions.verify("a", me, {T0, T1}) == {T0: ErrorCode.NONE, T1: ErrorCode.TRANSACTION_ABORTABLE}
    assert world.refused(lambda: world.transactions.verify("a", WHO, {T0})) == "INVALID_PRODUCER_ID_MAPPING"


def test_committing_offsets_adds_the_partition_of_the_group(world: TransactionWorld) -> None:
    """
    The internal topic is created if need be.
    """
    me = world.init()
    world.asked(world.transactions.add_offsets("a", me, "group", 4))
    topic = world.broker.view().topics["__consumer_offsets"]
    (place,) = world.transactions.describe("a").partitions
    log: Any = world.broker.coordinator(Resource.GROUP, "group")
    partition = world.broker.partition(topic.id, place.index)
    end = partition.log_end
    log.append([(b"key", b"value")])
    assert (place.topic, partition.log_end) == ("__consumer_offsets", end + 1)
    world.end(me, True)
    assert world.told == [(place, me.producer_id, True)]


def test_offsets_without_their_topic_are_refused(world: TransactionWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    The group coordinator is not available while the internal topic cannot be created.
    """
    me = world.init()
    coordinator = world.broker.coordinator

    def not_made(resource: Resource, key: str) -> Any:
        return coordinator(resource, key) if resource is Resource.TRANSACTIONAL_ID else Node(2)

    monkeypatch.setattr(world.broker, "coordinator", not_made)
    asked = lambda: world.asked(world.transactions.add_offsets("a", me, "g", 4))  # noqa: E731
    assert world.refused(asked) == "COORDINATOR_NOT_AVAILABLE"

    def refuse(resource: Resource, key: str) -> Any:
        raise KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS, "none")

    monkeypatch.setattr(world.broker, "coordinator", refuse)
    assert world.refused(asked) == "COORDINATOR_NOT_AVAILABLE"


def test_describe_returns_the_whole_state(world: TransactionWorld) -> None:
    me = world.init()
    world.clock.advance(1)
    world.add(me, [T0, T1])
    found = world.transactions.describe("a")
    assert found == Transaction(
        transactional_id="a",
        producer_id=me.producer_id,
        previous_id=me.producer_id,
        epoch=0,
        timeout_ms=TIMEOUT_MS,
        updated_ms=world.now_ms(),
        started_ms=world.now_ms(),
        state=found.state,
        partitions=frozenset({T0, T1}),
        client_version=EACH,
    )


def test_list_returns_matching_ids_of_all_state_logs(world: TransactionWorld) -> None:
    for number in range(20):
        world.init(name=f"id{number}")
    world.add(world.init(name="open"), name="open")

    def ids(**wanted: Any) -> set[str]:
        found: list[Transaction] = world.asked(world.transactions.list(TransactionFilter(**wanted), lambda _: True))
        return {one.transactional_id for one in found}

    assert ids() == {f"id{number}" for number in range(20)} | {"open"}
    assert ids(states=["Ongoing"]) == {"open"}
    assert ids(pattern="id1.*") == {"id1", *(f"id{number}" for number in range(10, 20))}


def test_a_list_waits_for_the_load(world: TransactionWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    A request for one id is refused meanwhile.
    """
    world.init()
    log: Any = world.broker.coordinator(Resource.TRANSACTIONAL_ID, "a")
    read: Deferred[Any] = Deferred()
    replayed = log.replay()
    monkeypatch.setattr(log, "replay", lambda: read)
    world.parts.stop()
    world.start()
    assert world.refused(world.state) == world.refused(world.init) == "COORDINATOR_LOAD_IN_PROGRESS"
    (loading,) = world.transactions.loading(["a"])
    listed = Deferred.fromCoroutine(world.transactions.list(TransactionFilter(), lambda _: True))
    assert (loading.called, listed.called) == (False, False)
    replayed.chainDeferred(read)
    assert loading.called
    assert [one.transactional_id for one in world.asked(_of(listed))] == ["a"]
    assert world.transactions.loading(["a"]) == []


async def _of(deferred: Deferred[Any]) -> Any:
    return await deferred


def test_a_new_coordinator_loads_all_ids(world: TransactionWorld) -> None:
    """
    It loads them before any request, and answers a repeated end.
    """
    me = world.init()
    world.add(me)
    after = world.end(me, True)
    before = world.transactions.describe("a")
    world.again()
    assert world.transactions.describe("a").producer == before.producer == after
    assert world.end(me, True) == after
    assert len(world.markers(T0)) == 1


def test_prepared_transactions_are_completed_at_the_start(world: TransactionWorld) -> None:
    """
    No request is needed.
    """
    world.found(transaction(state=TransactionState.PREPARE_COMMIT, partitions=frozenset({T0})))
    assert world.markers(T0) == [(7, 3, True, 0)]


def test_responses_wait_for_the_commit() -> None:
    """
    A crash cannot undo an answered request.
    """
    broker = SimulatedBroker()
    world = TransactionWorld(lambda _: cast(IBroker, broker))
    ask, log = world.transactions, broker.state
    log.is_slow = True

    def answered(answer: Coroutine[Any, Any, Any]) -> Any:
        asked = Deferred.fromCoroutine(answer)
        assert (asked.called, len(log.uncommitted)) == (False, 1)
        log.settle()
        return result(asked)

    me = answered(ask.init_producer("a", TIMEOUT_MS, None, 5))
    answered(ask.add_partitions("a", me, {T0}, 5))
    assert answered(ask.end("a", me, True, 5)) == (me.producer_id, 1)


def test_an_end_during_a_write_is_retried() -> None:
    """
    It refers to the committed state, so the client has to retry.
    """
    broker = SimulatedBroker()
    world = TransactionWorld(lambda _: cast(IBroker, broker))
    me = world.init()
    world.add(me, [T0])
    broker.state.is_slow = True
    adding = Deferred.fromCoroutine(world.transactions.add_partitions("a", me, {T1}, ADD_VERSION[EACH]))
    assert world.refused(lambda: world.end(me, True)) == "CONCURRENT_TRANSACTIONS"
    assert len(broker.state.uncommitted) == 1
    broker.state.is_slow = False
    broker.state.settle()
    result(adding)
    world.end(me, True)
    assert [len(one.entries) for one in broker.partitions] == [1, 1, 0]


def test_ids_of_another_node_are_refused(world: TransactionWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    FindCoordinator names that node.
    """
    assert world.transactions.node_of("a") is None
    monkeypatch.setattr(world.broker, "coordinator", lambda *_: Node(2))
    assert world.transactions.node_of("a") == Node(2)
    assert world.refused(world.init) == world.refused(world.state) == "NOT_COORDINATOR"


def test_a_stopping_gateway_coordinates_nothing(world: TransactionWorld) -> None:
    """
    No timer is left.
    """
    world.init()
    for _ in range(2):
        world.parts.stop()
    assert world.clock.getDelayedCalls() == []
    for call in (world.init, world.state, lambda: world.transactions.node_of("a")):
        assert world.refused(call) == "COORDINATOR_NOT_AVAILABLE"
    assert (
        world.refused(lambda: world.asked(world.transactions.list(TransactionFilter(), lambda _: True)))
        == "COORDINATOR_NOT_AVAILABLE"
    )


def test_deleting_the_internal_topic_deletes_its_ids(world: TransactionWorld) -> None:
    me = world.init()
    topic = world.broker.view().topics["__transaction_state"]
    world.broker.delete_topic(topic.id)
    assert world.refused(lambda: world.add(me)) == "INVALID_PRODUCER_ID_MAPPING"
    assert world.init().producer_id != me.producer_id


def test_no_producer_begins_without_a_producer_id(world: TransactionWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    The next one may, once the broker has one.
    """
    fails: Deferred[int] = Deferred()
    with monkeypatch.context() as patched:
        patched.setattr(world.broker, "new_producer_id", lambda: fails)
        asked = Deferred.fromCoroutine(world.transactions.init_producer("a", TIMEOUT_MS, None, 5))
        fails.errback(KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "full"))
    assert refusal(lambda: asked).code is ErrorCode.KAFKA_STORAGE_ERROR
    assert world.init().epoch == 0


def test_two_producers_that_begin_at_once(world: TransactionWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Both wait for a producer id, and the later one gets its next epoch.
    """
    waiting: list[Deferred[int]] = []

    def later() -> Deferred[int]:
        waiting.append(Deferred())
        return waiting[-1]

    monkeypatch.setattr(world.broker, "new_producer_id", later)
    asked = [Deferred.fromCoroutine(world.transactions.init_producer("a", TIMEOUT_MS, None, 5)) for _ in range(2)]
    for number, one in enumerate(waiting):
        one.callback(number + 50)
    assert [one.result for one in asked] == [(50, 0), (50, 1)]


def test_deleted_partitions_need_no_marker(world: TransactionWorld) -> None:
    me = world.init()
    world.add(me, [T0, TopicPartition("gone", 0), TopicPartition("t", 9)])
    world.end(me, True)
    assert world.state() == "CompleteCommit"
    assert len(world.markers(T0)) == 1
