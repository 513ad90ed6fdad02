"""
Whatever decides that records are removed is synced with their removal: after a power loss transactions and producers
are unchanged, whatever compaction has removed.
"""

from collections.abc import Callable

import pytest

from kgateway.broker.log.partition.partition import LogPartition
from kgateway.broker.partition.producer_state import EXPIRY_MS
from kgateway.cluster.partition import Origin
from kgateway.records.batch import Batch
from kgateway.wire.errors import ErrorCode
from tests.broker.behaviour import refusal, result
from tests.broker.log.compaction.jobs import keyed
from tests.broker.log.compaction.test_crashes import Life, small_segments
from tests.broker.transaction_model import committed, in_transaction, marked, transact

__all__ = ["small_segments"]

pytestmark = pytest.mark.usefixtures("power_goes")

FSYNC = pytest.mark.parametrize("fsync", ["false", "true"])
SEEDS = pytest.mark.parametrize("seed", range(4))


def of(key: bytes) -> Batch:
    """
    A record without a producer.
    """
    return keyed((key, bytes(150)))


def fill(partition: LogPartition, is_enough: Callable[[], bool]) -> None:
    while not is_enough():
        partition.append(of(b"x"), Origin.CLIENT)


def roll(partition: LogPartition) -> None:
    base = partition.segment_list.segments[-1].base_offset
    fill(partition, lambda: partition.segment_list.segments[-1].base_offset != base)


def without_power(life: Life) -> LogPartition:
    """
    The partition after a power loss.
    """
    life.again(power=True)
    return life.partition


@SEEDS
@pytest.mark.parametrize("commits", [True, False])
def test_a_marker_that_is_not_synced(seed: int, commits: bool) -> None:
    """
    It stands behind the compacted part, and makes a last value count, so that an earlier one is removed, or aborts
    one. So it must be synced too.
    """
    life = Life(seed, segment_bytes="400", kgateway_acks_fsync="false")
    partition = life.partition
    partition.append(of(b"k"), Origin.CLIENT)
    roll(partition)
    (first,) = transact(partition, in_transaction(70, b"k"))
    fill(partition, lambda: partition.segment_list.segments[-1].base_offset > first)
    (marker,) = transact(partition, marked(70, commits))
    assert partition.synced_offset <= marker
    life.compact()
    kept = committed(partition, 0)
    partition = without_power(life)
    assert partition.last_stable == partition.log_end
    assert committed(partition, 0) == [record for record in kept if record.offset < partition.log_end]
    assert b"k" in {record.key for record in kept}


@FSYNC
def test_markers_before_the_log_start(fsync: str) -> None:
    """
    A transaction was open at the border of a segment, and records were deleted past its marker.
    """
    life = Life(1, kgateway_acks_fsync=fsync)
    partition = life.partition
    transact(partition, in_transaction(70, b"a"))
    roll(partition)
    (marker,) = transact(partition, marked(70, commits=True))
    partition.append(of(b"y"), Origin.CLIENT)
    result(partition.delete_before(marker + 1))
    roll(partition)
    for _ in range(2):
        life.clock.advance(5)
        life.compact()
    partition = without_power(life)
    assert partition.last_stable == partition.log_end


@FSYNC
def test_producers_before_the_log_start(fsync: str) -> None:
    """
    A producer's last batch is below it, and the producer continues.
    """
    life = Life(1, kgateway_acks_fsync=fsync)
    partition = life.partition
    transact(partition, *(in_transaction(70, b"a", sequence=sequence) for sequence in range(3)))
    transact(partition, marked(70, commits=True), of(b"y"))
    result(partition.delete_before(3))
    roll(partition)
    life.clock.advance(5)
    life.compact()
    life.clock.advance(5)
    transact(without_power(life), in_transaction(70, b"a", sequence=3))


@FSYNC
def test_epochs_before_the_log_start(fsync: str) -> None:
    """
    An epoch is known only by a marker below it; the previous epoch is refused all the same.
    """
    life = Life(1, kgateway_acks_fsync=fsync)
    partition = life.partition
    transact(partition, in_transaction(70, b"a"))
    roll(partition)
    (marker,) = transact(partition, marked(70, commits=False, epoch=1))
    result(partition.delete_before(marker + 1))
    roll(partition)
    for _ in range(2):
        life.clock.advance(5)
        life.compact()
    late = keyed(b"a", producer_id=70, producer_epoch=0, base_sequence=1)
    partition = without_power(life)
    assert refusal(lambda: partition.append(late, Origin.CLIENT)).code is ErrorCode.INVALID_PRODUCER_EPOCH


@FSYNC
@SEEDS
def test_markers_that_have_gone(seed: int, fsync: str) -> None:
    """
    The file at the border of a segment has a transaction open, days ago: its marker was removed by the usual rules,
    and its producer is forgotten.
    """
    life = Life(seed, segment_bytes="100000", kgateway_acks_fsync=fsync)
    partition = life.partition
    partition.append(of(b"live"), Origin.CLIENT)
    transact(partition, in_transaction(70, b"a"))
    partition._roll()
    border = partition.log_end
    transact(partition, marked(70, commits=True), of(b"a"))
    for day in range(8):
        transact(partition, in_transaction(71, b"o", sequence=day), marked(71, commits=True))
        partition._roll()
        if not day:
            result(partition.delete_before(border))
        partition.append(of(b"z"), Origin.CLIENT)
        for _ in range(3):
            life.clock.advance(5)
        life.now_ms += EXPIRY_MS + 1
    life.clock.advance(3600)
    partition = without_power(life)
    assert partition.last_stable == partition.log_end
