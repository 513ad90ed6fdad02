"""
When records are synced, and which requests wait for that.
"""

from errno import EIO, EMFILE
from pathlib import Path

import pytest
from twisted.internet.defer import Deferred
from twisted.logger import LogLevel, capturedLogs, formatEvent

from kgateway.broker.log.partition.partition import LogPartition
from kgateway.broker.log.segments.file_names import file_name
from kgateway.broker.partition.leader_epochs import EPOCH_FILE
from kgateway.cluster.partition import Appended, Isolation, Origin, TimestampAndOffset
from kgateway.interfaces import IPartition
from kgateway.wire.errors import ErrorCode, KafkaError
from tests.broker.behaviour import START_MS, at_times, batch, fetched, offsets, refusal, result, sequenced
from tests.broker.log.log_world import LogWorld

SIZE = len(batch().data)
LOG = file_name(0, ".log")


@pytest.fixture
def world(tmp_path: Path) -> LogWorld:
    return LogWorld(tmp_path)


@pytest.fixture
def partition(world: LogWorld) -> LogPartition:
    """
    A partition whose acks wait for syncs, in a world with slow threads.
    """
    found = world.log_partition(acks_fsync=True)
    world.threads.slow = True
    world.disk.done.clear()
    return found


def add(partition: IPartition) -> Deferred[None]:
    """
    Append a batch; fires when it is committed.
    """
    answer = partition.append(batch(), Origin.CLIENT)
    assert answer.stored is None
    assert answer.committed is not None
    return answer.committed


async def asked(partition: LogPartition) -> None:
    await partition.sync()


def code_of(committed: Deferred[None]) -> ErrorCode:
    return refusal(lambda: committed).code


def synced(world: LogWorld) -> list[str]:
    """
    The synced files, in order.
    """
    return [name for done, name in world.disk.done if done in ("sync", "sync_folder")]


def test_batches_are_read_once_they_are_safe(world: LogWorld, partition: LogPartition) -> None:
    """
    Before its sync has ended a batch has its offset, but cannot be read or found, and is not under the high watermark;
    afterwards all of that, and listeners hear of it.
    """
    seen = list[int]()
    partition.watch(lambda: seen.append(partition.high_watermark))
    committed = add(partition)
    assert (partition.log_end, partition.high_watermark, partition.last_stable, committed.called) == (1, 0, 0, False)
    assert offsets(fetched(partition, 0)) == []
    found, largest = partition.find_time(0), partition.find_max_time()
    for _ in range(3):
        world.threads.work()
    assert (result(found), result(largest)) == (None, None)
    assert (partition.high_watermark, partition.last_stable, committed.called) == (1, 1, True)
    assert offsets(fetched(partition, 0)) == [0]
    assert seen == [0, 1]


def test_one_sync_covers_batches_appended_meanwhile(world: LogWorld, partition: LogPartition) -> None:
    """
    One more sync commits every batch that was appended during a sync.
    """
    waiting = [add(partition) for _ in range(4)]
    assert len(world.threads) == 1
    world.threads.work()
    assert [committed.called for committed in waiting] == [True, False, False, False]
    assert partition.high_watermark == 1
    assert offsets(fetched(partition, 0)) == [0]
    world.threads.work()
    assert all(committed.called for committed in waiting)
    assert (len(world.threads), synced(world).count(LOG)) == (0, 2)
    assert partition.synced_offset == partition.high_watermark == 4


def test_appends_are_acknowledged_in_order(world: LogWorld, partition: LogPartition) -> None:
    told = list[int]()

    def tell(_: None, number: int) -> None:
        told.append(number)

    for number in range(3):
        add(partition).addCallback(tell, number)
    while world.threads:
        world.threads.work()
    assert told == [0, 1, 2]


def test_first_sync_includes_the_folders(world: LogWorld, partition: LogPartition) -> None:
    """
    A file needs a durable name: the folders are synced after the first batch, and not again.
    """
    for _ in range(2):
        add(partition)
        world.threads.work()
    assert synced(world) == [LOG, "t-0", world.path.name, LOG]


def test_duplicate_batches_wait_for_the_sync(world: LogWorld, partition: LogPartition) -> None:
    """
    A retrying producer is not acknowledged before the original is committed.
    """
    partition.append(sequenced(0), Origin.CLIENT)
    again = partition.append(sequenced(0), Origin.CLIENT)
    assert (again.base_offset, partition.log_end) == (0, 1)
    assert again.committed is not None
    assert not again.committed.called
    world.threads.work()
    assert again.committed.called
    assert partition.append(sequenced(0), Origin.CLIENT) == Appended(0, -1, 0)


def test_without_fsync_batches_are_committed_at_once(world: LogWorld) -> None:
    """
    A batch is committed once it is in the page cache; nothing is synced.
    """
    partition = world.log_partition()
    world.disk.done.clear()
    assert partition.append(batch(), Origin.CLIENT) == Appended(0, -1, 0)
    assert (partition.high_watermark, synced(world)) == (1, [])


def test_a_failed_sync_takes_the_partition_offline(world: LogWorld, partition: LogPartition) -> None:
    """
    Once, for all who wait and all who come, with the reason told to the operator; the sync is never tried again.
    """
    seen = list[KafkaError | None]()
    partition.watch(lambda: seen.append(partition.lost))
    waiting = [add(partition) for _ in range(3)]
    world.disk.failing["sync .log"] = EIO
    with capturedLogs() as logged:
        world.threads.work()
    world.disk.failing.clear()
    assert [code_of(committed) for committed in waiting] == [ErrorCode.KAFKA_STORAGE_ERROR] * 3
    reason = f"t-0 is offline, because it could not be synced: Input/output error ({partition.folder / LOG})"
    told = [formatEvent(event) for event in logged if event["log_level"] is LogLevel.critical]
    assert told == [f"{reason}; restart the gateway"]
    assert partition.offline
    assert [error.code for error in seen if error] == [ErrorCode.KAFKA_STORAGE_ERROR]
    assert refusal(lambda: partition.append(batch(), Origin.CLIENT)).message == told[0]
    assert refusal(lambda: partition.read(0, 1, Isolation.READ_UNCOMMITTED, True)).message == told[0]
    assert (len(world.threads), world.disk.count("sync", LOG)) == (0, 0)


@pytest.mark.parametrize("operation", [f"open {LOG}", f"open {EPOCH_FILE}", "open_folder t-0"])
def test_a_file_that_cannot_be_opened_for_a_sync(operation: str, tmp_path: Path) -> None:
    """
    Or a folder. Nothing was synced in vain then, as where the process has too many files open: it is tried again every
    second, who has appended waits, and the operator is told.
    """
    world = LogWorld(tmp_path, open_files_max=1)
    partition = world.log_partition(segment_bytes=SIZE, acks_fsync=True)
    partition.append(batch(), Origin.CLIENT)
    world.disk.failing[operation] = EMFILE
    world.threads.slow = True
    with capturedLogs() as logged:
        waiting = [add(partition), add(partition)]
        while world.threads:
            world.threads.work()
    assert (partition.offline, [committed.called for committed in waiting], partition.synced_offset) == (
        False,
        [False] * 2,
        1,
    )
    (told,) = [event for event in logged if event["log_level"] is LogLevel.critical]
    assert told["what"] == "the sync of t-0"
    assert told["reason"].startswith("Too many open files")
    world.threads.slow = False
    world.disk.failing.clear()
    world.disk.done.clear()
    world.clock.advance(1)
    assert ([committed.called for committed in waiting], partition.synced_offset) == ([True] * 2, 3)
    assert LOG in synced(world)
    assert file_name(1, ".log") in synced(world)
    assert not partition._runtime.health.failing


def test_a_full_segment_is_synced_with_what_tells_of_it(world: LogWorld) -> None:
    """
    When a new segment is begun the old one is synced, its indexes, the producers and epochs at the border, and last the
    names of all; nobody waits for that.
    """
    partition = world.log_partition(segment_bytes=2 * SIZE)
    world.disk.done.clear()
    for _ in range(2):
        partition.append(sequenced(partition.log_end), Origin.CLIENT)
    assert synced(world) == []
    assert partition.append(batch(), Origin.CLIENT).committed is None
    beside = [file_name(0, ".index"), file_name(0, ".timeindex"), file_name(2, ".snapshot"), EPOCH_FILE]
    assert synced(world) == [file_name(2, ".log"), LOG, *beside, "t-0", world.path.name]
    assert partition.synced_offset == 2
    world.disk.done.clear()
    result(partition.sync())
    assert (synced(world), partition.synced_offset) == ([file_name(2, ".log")], 3)


def test_sync_request_waits_for_a_sync_that_begins_later(world: LogWorld, partition: LogPartition) -> None:
    """
    A sync that has already begun does not count.
    """
    for _ in range(2):
        add(partition)
    waiting = partition.sync()
    world.threads.work()
    assert not waiting.called
    world.threads.work()
    assert waiting.called


def test_deletion_ends_sync_retries(world: LogWorld, partition: LogPartition) -> None:
    """
    No request waits for ever, and nothing is retried.
    """
    world.threads.slow = False
    partition._runtime.files.close_in(partition.folder)
    world.disk.failing["open .log"] = EMFILE
    waiting = Deferred.fromCoroutine(asked(partition))
    assert not waiting.called
    result(world.broker.delete_topic(partition.topic.id))
    assert code_of(waiting) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    world.disk.done.clear()
    world.clock.advance(1)
    assert LOG not in synced(world)


def test_deletion_during_a_sync_is_no_disk_error(world: LogWorld, partition: LogPartition) -> None:
    """
    Waiting requests fail because the topic is gone, not because of the disk.
    """
    committed = add(partition)
    world.threads.slow = False
    result(world.broker.delete_topic(partition.topic.id))
    world.disk.failing["sync .log"] = EIO
    world.threads.work()
    assert code_of(committed) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert not partition.offline
    assert all(file.path.name != LOG for file in world.disk.opened)


def deleted_amid_a_sync(world: LogWorld, partition: LogPartition) -> Deferred[None]:
    """
    A thread has a sync, the next one is asked for, and then the topic goes; fires as the second one ends.
    """
    deleting = world.broker.delete_topic(partition.topic.id)
    add(partition).addErrback(lambda _: None)
    waiting = Deferred.fromCoroutine(asked(partition))
    world.threads.work()  # the journal's
    assert partition.lost
    while world.threads:
        world.threads.work()
    result(deleting)
    return waiting


def test_no_sync_follows_a_deletion(world: LogWorld, partition: LogPartition) -> None:
    """
    Other files may soon have these names.
    """
    waiting = deleted_amid_a_sync(world, partition)
    assert code_of(waiting) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert synced(world).count(LOG) == 1
    assert not partition._runtime.health.failing


def test_untried_sync_is_not_retried_after_a_deletion(world: LogWorld, partition: LogPartition) -> None:
    world.disk.failing["open_folder t-0"] = EMFILE
    waiting = deleted_amid_a_sync(world, partition)
    assert code_of(waiting) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    world.disk.failing.clear()
    world.threads.slow = False
    world.disk.done.clear()
    world.clock.advance(1)
    assert LOG not in synced(world)
    assert not partition._runtime.health.failing


def test_sync_does_not_cover_later_appends(world: LogWorld) -> None:
    """
    A sync covers what was there when it was requested.
    """
    partition = world.log_partition()
    world.threads.slow = True
    for is_synced in (False, True):
        partition.append(batch(), Origin.CLIENT)
        sync_all = partition.sync_all()
        if not is_synced:
            partition.append(batch(), Origin.CLIENT)
        while world.threads:
            world.threads.work()
        result(sync_all)
        assert partition.is_synced is is_synced


@pytest.mark.parametrize("segment_bytes", [SIZE, 9 * SIZE])
def test_readers_stop_at_the_high_watermark(segment_bytes: int, world: LogWorld) -> None:
    """
    A record that is not committed yet is neither read nor found, in the same segment or another.
    """
    partition = world.log_partition(acks_fsync=True, segment_bytes=segment_bytes)
    partition.append(at_times(START_MS), Origin.CLIENT)
    world.threads.slow = True
    partition.append(at_times(START_MS + 5), Origin.CLIENT)
    assert offsets(fetched(partition, 1)) == []
    found, largest = partition.find_time(START_MS + 1), partition.find_max_time()
    world.disk.failing["sync"] = EIO
    while world.threads:
        world.threads.work()
    assert (result(found), result(largest)) == (None, TimestampAndOffset(0, START_MS, 0))


def test_sync_request_waits_for_one_sync_under_writes(world: LogWorld, partition: LogPartition) -> None:
    """
    A request to sync everything waits for one whole sync, however much is written meanwhile.
    """
    add(partition)
    waiting = partition.sync()
    add(partition)
    world.threads.work()
    assert not waiting.called
    add(partition)
    world.threads.work()
    assert waiting.called
    assert len(world.threads) == 1
