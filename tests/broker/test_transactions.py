"""
Transactions in a partition, on every storage.
"""

from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from kgateway.broker.memory import MemoryBroker
from kgateway.cluster.partition import Aborted, Isolation, Origin
from kgateway.interfaces import IPartition
from kgateway.wire.errors import ErrorCode
from tests.broker.behaviour import EXPIRY_MS, START_MS, World, batch, fetched, refusal, result, sequenced
from tests.broker.log.log_world import LogWorld
from tests.broker.transaction_model import PRODUCERS, Ledger, committed, in_transaction, marked, transact

ONE, TWO, *_ = PRODUCERS


def _in_memory(_: Path) -> IPartition:
    return World(lambda now_ms, expiry_ms: MemoryBroker(now_ms=now_ms, producer_expiry_ms=expiry_ms)).partition()


def _on_disk(path: Path) -> IPartition:
    return LogWorld(path).log_partition(segment_bytes=600, index_interval_bytes=100)


def _on_disk_once_it_is_sure(path: Path) -> IPartition:
    return LogWorld(path).log_partition(segment_bytes=600, acks_fsync=True)


@pytest.fixture(params=[_in_memory, _on_disk, _on_disk_once_it_is_sure])
def partition(request: pytest.FixtureRequest, tmp_path: Path) -> IPartition:
    make: Callable[[Path], IPartition] = request.param
    return make(tmp_path)


def test_last_stable_offset_is_the_first_open_transaction(partition: IPartition) -> None:
    """
    Without open transactions it is the high watermark.
    """
    seen = list[int]()
    for sent in (
        batch(2),
        in_transaction(ONE, b"a"),
        in_transaction(TWO, b"b"),
        in_transaction(ONE, b"c", sequence=1),
        marked(ONE, commits=True),
        batch(),
        marked(TWO, commits=False),
        batch(),
    ):
        transact(partition, sent)
        seen.append(partition.last_stable)
    assert seen == [2, 2, 2, 2, 3, 3, 8, 9]


def test_read_committed_ends_at_the_last_stable_offset(partition: IPartition) -> None:
    """
    Other reads do not.
    """
    transact(partition, batch(), in_transaction(ONE, b"a"), batch())
    read = fetched(partition, 0, isolation=Isolation.READ_COMMITTED)
    assert [record.offset for record in committed(partition, 0)] == [0]
    assert (read.last_stable, read.high_watermark, read.aborted) == (1, 3, [])
    assert fetched(partition, 1, isolation=Isolation.READ_COMMITTED, at_least_one=True).batches == []
    assert fetched(partition, 0).aborted is None
    transact(partition, marked(ONE, commits=True))
    assert [record.offset for record in committed(partition, 0)] == [0, 1, 2]


def test_aborted_transactions_are_reported_to_readers(partition: IPartition) -> None:
    """
    A read reports those that overlap its range.
    """
    transact(partition, in_transaction(ONE, b"a"), batch(), marked(ONE, commits=False), batch())
    transact(partition, in_transaction(TWO, b"a"), marked(TWO, commits=False))
    told = {offset: fetched(partition, offset, isolation=Isolation.READ_COMMITTED).aborted for offset in range(6)}
    first, second = Aborted(ONE, 0), Aborted(TWO, 4)
    assert told == {0: [first, second], 1: [first, second], 2: [first, second], 3: [second], 4: [second], 5: [second]}
    only = fetched(partition, 0, 1, Isolation.READ_COMMITTED, at_least_one=True)
    assert only.aborted == [first]
    assert [record.offset for record in committed(partition, 0)] == [1, 3]


def test_markers_without_a_transaction_change_nothing(partition: IPartition) -> None:
    """
    A coordinator repeats a marker when it does not know whether the last one was written.
    """
    transact(partition, marked(ONE, commits=False), in_transaction(TWO, b"a"), marked(ONE, commits=False))
    assert partition.last_stable == 1
    transact(partition, marked(TWO, commits=True), marked(TWO, commits=True), marked(TWO, commits=False))
    assert (partition.last_stable, [record.offset for record in committed(partition, 0)]) == (6, [1])


def test_markers_of_old_coordinators_are_fenced(partition: IPartition) -> None:
    """
    A marker of a later coordinator fences earlier ones.
    """
    transact(partition, in_transaction(ONE, b"a"), marked(ONE, commits=True, coordinator_epoch=5))
    old = marked(ONE, commits=False, coordinator_epoch=4)
    assert refusal(lambda: partition.append(old, Origin.COORDINATOR)).code is ErrorCode.TRANSACTION_COORDINATOR_FENCED
    transact(partition, marked(ONE, commits=True, coordinator_epoch=5), marked(ONE, commits=True, coordinator_epoch=6))
    assert partition.producers().producers[ONE].coordinator_epoch == 6


def test_markers_fence_producers(partition: IPartition) -> None:
    """
    A marker with a later epoch ends the transaction and fences the earlier epoch; sequence numbers restart.
    """
    transact(partition, in_transaction(ONE, b"a"), marked(ONE, commits=False, epoch=1))
    assert partition.last_stable == 2
    old = in_transaction(ONE, b"b", sequence=1)
    assert refusal(lambda: partition.append(old, Origin.COORDINATOR)).code is ErrorCode.INVALID_PRODUCER_EPOCH
    late = marked(ONE, commits=True)
    assert refusal(lambda: partition.append(late, Origin.COORDINATOR)).code is ErrorCode.INVALID_PRODUCER_EPOCH
    transact(partition, in_transaction(ONE, b"b", epoch=1))
    assert partition.last_stable == 2


def test_a_transaction_belongs_to_one_epoch(partition: IPartition) -> None:
    """
    The next epoch begins its own.
    """
    transact(partition, in_transaction(ONE, b"a", epoch=1))
    assert [epoch for epoch in range(3) if partition.producers().has_open(ONE, epoch)] == [1]
    transact(partition, marked(ONE, commits=True, epoch=1))
    assert not partition.producers().has_open(ONE, 1)


def test_open_transactions_refuse_other_batches(partition: IPartition) -> None:
    """
    A producer with an open transaction writes nothing outside it.
    """
    transact(partition, in_transaction(ONE, b"a"))
    beside = sequenced(1, producer_id=ONE)
    assert refusal(lambda: partition.append(beside, Origin.CLIENT)).code is ErrorCode.INVALID_TXN_STATE


def test_log_start_within_a_transaction(partition: IPartition) -> None:
    """
    Deleted records are below the last stable offset; the rest of the transaction stays open.
    """
    transact(partition, in_transaction(ONE, b"a"), batch(), in_transaction(ONE, b"b", sequence=1), batch())
    assert result(partition.delete_before(2)) == 2
    assert partition.last_stable == 2
    assert committed(partition, 2) == []
    transact(partition, marked(ONE, commits=False), batch())
    assert [record.offset for record in committed(partition, 2)] == [3, 5]
    assert result(partition.delete_before(5)) == 5
    assert fetched(partition, 5, isolation=Isolation.READ_COMMITTED).aborted == []


def test_producers_in_transactions_do_not_expire() -> None:
    """
    Other silent ones do.
    """
    world = World(lambda now_ms, expiry_ms: MemoryBroker(now_ms=now_ms, producer_expiry_ms=expiry_ms))
    partition = world.partition()
    transact(partition, in_transaction(ONE, b"a"), in_transaction(TWO, b"b"), marked(TWO, commits=True))
    world.now_ms = START_MS + EXPIRY_MS + 1
    transact(partition, sequenced(0, producer_id=7))
    assert set(partition.producers().producers) == {ONE, 7}
    partition.producers().expire(world.now_ms, ONE)
    assert ONE in partition.producers().producers


@pytest.mark.parametrize("seed", range(12))
def test_consumers_get_committed_records(partition: IPartition, seed: int) -> None:
    """
    After any history a consumer of committed records gets exactly those.
    """
    ledger = Ledger(Random(seed))
    for _ in range(ledger.chance.choice((10, 60))):
        ledger.write(partition)
    ledger.check(partition)
    if ledger.chance.random() < 0.5:
        result(partition.delete_before(ledger.chance.randint(0, partition.high_watermark)))
        ledger.check(partition)
