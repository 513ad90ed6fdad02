"""
Partitions that are synced together.
"""

from collections.abc import Sequence
from errno import EIO, EMFILE
from pathlib import Path

import pytest
from twisted.internet.defer import Deferred

from kgateway.broker.log.files.disk import File
from kgateway.broker.log.partition.partition import LogPartition
from kgateway.broker.log.segments.file_names import file_name
from kgateway.cluster.partition import Origin
from kgateway.records.batch import Batch
from kgateway.wire.errors import ErrorCode, KafkaError
from tests.broker.behaviour import batch, refusal, result
from tests.broker.log.log_world import LogWorld

LOG = file_name(0, ".log")


@pytest.fixture
def world(tmp_path: Path) -> LogWorld:
    return LogWorld(tmp_path)


@pytest.fixture
def partitions(world: LogWorld) -> list[LogPartition]:
    """
    Three partitions whose acks wait for syncs, in a world with slow threads. Their folders are synced already.
    """
    found = [world.log_partition(name, acks_fsync=True) for name in "abc"]
    for partition in found:
        partition.append(batch(), Origin.CLIENT)
    world.threads.slow = True
    world.disk.done.clear()
    return found


def add(partition: LogPartition, sent: Batch | None = None) -> Deferred[None]:
    """
    Append a batch; fires when it is committed.
    """
    committed = partition.append(sent or batch(), Origin.CLIENT).committed
    assert committed is not None
    return committed


def large() -> Batch:
    """
    A batch that takes a disk longer than others.
    """
    return batch(30_000)


def called(waiting: list[Deferred[None]]) -> list[bool]:
    return [each.called for each in waiting]


def code_of(committed: Deferred[None]) -> ErrorCode:
    return refusal(lambda: committed).code


def test_all_that_is_requested_during_a_trip_shares_the_next(world: LogWorld, partitions: list[LogPartition]) -> None:
    """
    First the partition that was written first, then together all that were written meanwhile, each once.
    """
    waiting = [add(partition) for partition in partitions] + [add(partitions[0])]
    assert len(world.threads) == 1
    world.threads.work()
    assert called(waiting) == [True, False, False, False]
    assert len(world.threads) == 1
    world.threads.work()
    assert called(waiting) == [True] * 4
    assert (len(world.threads), world.disk.count("sync", LOG)) == (0, 4)


def test_the_next_trip_begins_before_responses(world: LogWorld, partitions: list[LogPartition]) -> None:
    """
    The disk works while responses are sent.
    """
    under_way = list[int]()
    add(partitions[0]).addCallback(lambda _: under_way.append(len(world.threads)))
    add(partitions[0])
    world.threads.work()
    assert under_way == [1]


def test_a_later_sync_may_be_reported_first(world: LogWorld, partitions: list[LogPartition]) -> None:
    """
    As where a thread ends at once: what is synced does not get less.
    """
    world.threads.slow = False
    sync_files = world.disk.sync_files

    def written_meanwhile(files: Sequence[File]) -> list[OSError | None]:
        world.disk.sync_files = sync_files  # type: ignore[method-assign]  # only the first time
        partitions[0].append(batch(), Origin.CLIENT)
        return sync_files(files)

    world.disk.sync_files = written_meanwhile  # type: ignore[method-assign]  # something happens meanwhile
    partitions[0].append(batch(), Origin.CLIENT)
    assert (partitions[0].synced_offset, partitions[0].high_watermark) == (3, 3)


def test_a_sync_covers_what_is_written_before_its_trip(world: LogWorld, partitions: list[LogPartition]) -> None:
    waiting = [add(partitions[number]) for number in (0, 1, 1)]
    for _ in range(2):
        world.threads.work()
    assert called(waiting) == [True] * 3
    assert (len(world.threads), world.disk.count("sync", LOG)) == (0, 2)


def test_a_failed_sync_affects_one_partition(world: LogWorld, partitions: list[LogPartition]) -> None:
    """
    The partition whose file could not be synced is offline and is not synced again; the others of the trip are
    committed.
    """
    waiting = [add(partitions[number]) for number in (0, 0, 1, 2)]
    world.threads.work()
    waiting.append(add(partitions[1]))
    world.disk.failing[f"sync {partitions[1].folder.name}/{LOG}"] = EIO
    world.threads.work()
    assert [partition.offline for partition in partitions] == [False, True, False]
    assert [result(waiting[number]) for number in (0, 1, 3)] == [None] * 3
    assert [code_of(waiting[number]) for number in (2, 4)] == [ErrorCode.KAFKA_STORAGE_ERROR] * 2
    assert [partition.synced_offset for partition in partitions] == [3, 1, 2]
    assert len(world.threads) == 0


def test_a_trip_without_results_fails_for_all(world: LogWorld, partitions: list[LogPartition]) -> None:
    """
    Nobody knows what is synced then.
    """
    waiting = [add(partitions[number]) for number in (0, 1, 2)]
    world.threads.work()
    world.disk.failing["sync_files"] = EIO
    world.threads.work()
    assert [partition.offline for partition in partitions] == [False, True, True]
    assert [code_of(committed) for committed in waiting[1:]] == [ErrorCode.KAFKA_STORAGE_ERROR] * 2


def test_much_to_write_does_not_hold_others(world: LogWorld, partitions: list[LogPartition]) -> None:
    """
    A partition that has written much is synced by another thread than those that have written little.
    """
    heavy, light = add(partitions[0], large()), add(partitions[1])
    assert len(world.threads) == 2
    world.threads.work(1)
    assert called([heavy, light]) == [False, True]
    waiting = [add(partitions[0]), add(partitions[1])]
    world.threads.work(1)
    assert called([heavy, *waiting]) == [False, False, True]
    world.threads.work()
    world.threads.work()
    assert called([heavy, *waiting]) == [True] * 3
    add(partitions[0])
    add(partitions[1])
    assert len(world.threads) == 1  # what was synced before does not count


def test_a_new_segment_is_synced_with_the_one_before(world: LogWorld, partitions: list[LogPartition]) -> None:
    """
    A new segment begins while its partition waits for a trip: the records in it are committed once the segment before
    is synced too.
    """
    add(partitions[0])
    waiting = [add(partitions[1])]
    partitions[1]._roll()
    waiting.append(add(partitions[1]))
    world.threads.work()
    assert called(waiting) == [False, False]
    world.disk.done.clear()
    world.threads.work()
    assert called(waiting) == [True, True]
    assert {("sync", LOG), ("sync", file_name(2, ".log")), ("sync_folder", "b-0")} <= set(world.disk.done)


def test_a_deleted_partition_is_not_synced(world: LogWorld, partitions: list[LogPartition]) -> None:
    """
    Other files may soon have its names; requests to sync it end.
    """
    add(partitions[0])
    committed, waiting = add(partitions[1]), partitions[1].sync()
    partitions[1].lose(KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
    world.threads.work()
    assert [code_of(each) for each in (committed, waiting)] == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] * 2
    assert (len(world.threads), world.disk.count("sync", LOG)) == (0, 1)


def test_a_file_that_cannot_be_opened_leaves_the_trip(world: LogWorld, partitions: list[LogPartition]) -> None:
    """
    No sync has failed; the partition is synced a second later, and the others of the trip at once.
    """
    waiting = [add(partition) for partition in partitions]
    partitions[1]._runtime.files.close_in(partitions[1].folder)
    world.disk.failing[f"open {partitions[1].folder.name}/{LOG}"] = EMFILE
    for _ in range(2):
        world.threads.work()
    assert called(waiting) == [True, False, True]
    world.disk.failing.clear()
    world.clock.advance(1)
    world.threads.work()
    assert called(waiting) == [True] * 3


def test_no_trip_begins_after_the_end(world: LogWorld, partitions: list[LogPartition]) -> None:
    waiting = [add(partition) for partition in partitions]
    partitions[0]._runtime.stop_syncs()
    world.threads.work()
    assert called(waiting) == [True, False, False]
    add(partitions[0])
    assert len(world.threads) == 0
