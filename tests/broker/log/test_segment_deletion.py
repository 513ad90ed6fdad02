"""
The oldest segments of a log are deleted, with their files.
"""

import gc
from collections.abc import Callable
from errno import EIO, ENOSPC
from pathlib import Path
from typing import Any

import pytest
from twisted.internet.defer import Deferred, execute
from twisted.logger import LogLevel, capturedLogs

from kgateway.broker.log.data_folder.checkpoints import LOG_STARTS
from kgateway.broker.log.partition import segment_deletion
from kgateway.broker.log.partition.partition import LogPartition
from kgateway.broker.log.segments.file_names import file_name
from kgateway.broker.log.segments.segment import Segment
from kgateway.broker.partition.leader_epochs import EPOCH_FILE
from kgateway.cluster.partition import EpochEnd, Isolation, Origin, TimestampAndOffset
from kgateway.records.batch import Batch
from kgateway.wire.errors import ErrorCode
from tests.broker.behaviour import (
    PLENTY,
    START_MS,
    appended,
    at_times,
    batch,
    fetched,
    offsets,
    refusal,
    result,
    sequenced,
)
from tests.broker.log.log_brokers import Turns
from tests.broker.log.log_world import LogWorld
from tests.records.crc_batches import sealed

SIZE = len(batch().data)
ROUND_S = 300


@pytest.fixture
def world(tmp_path: Path) -> LogWorld:
    return LogWorld(tmp_path)


def filled(world: LogWorld, count: int = 5, **config: Any) -> LogPartition:
    """
    A partition with two batches of one record in each segment.
    """
    partition = world.log_partition(segment_bytes=2 * SIZE, **config)
    for number in range(count):
        appended(partition, sequenced(number))
    return partition


def logs(partition: LogPartition) -> list[str]:
    """
    The segments with files; renamed ones have a star.
    """
    names = sorted(path.name for path in partition.folder.iterdir() if ".log" in path.name)
    return [f"{int(name[:20])}{'*' if name.endswith('.deleted') else ''}" for name in names]


def held(partition: LogPartition) -> list[int]:
    """
    The segments that are in memory.
    """
    gc.collect()
    found = [each for each in gc.get_objects() if isinstance(each, Segment)]
    return [segment.base_offset for segment in found if segment.path.parent == partition.folder]


def beside(partition: LogPartition, suffix: str) -> list[str]:
    return sorted(path.name for path in partition.folder.glob(f"*{suffix}"))


def test_segments_before_the_log_start_are_deleted(world: LogWorld) -> None:
    """
    A segment wholly before the log start is renamed, and removed some time later; others are kept.
    """
    partition = filled(world, file_delete_delay_ms=2000)
    assert logs(partition) == ["0", "2", "4"]
    result(partition.delete_before(1))
    assert logs(partition) == ["0", "2", "4"]
    result(partition.delete_before(5))
    assert logs(partition) == ["0*", "2*", "4"]
    assert beside(partition, ".index") == beside(partition, ".timeindex") == []
    assert beside(partition, ".snapshot") == [file_name(4, ".snapshot")]
    world.clock.advance(1.9)
    assert logs(partition) == ["0*", "2*", "4"]
    world.clock.advance(0.1)
    assert logs(partition) == ["4"]
    assert not list(partition.folder.glob("*.deleted"))


def test_active_segment_is_kept(world: LogWorld) -> None:
    """
    When all records are deleted, the active segment is kept: its bytes are deleted when it is old.
    """
    partition = filled(world)
    result(partition.delete_before(5))
    assert logs(partition)[-1] == "4"
    assert appended(partition, sequenced(5)).base_offset == 5
    assert logs(partition)[-1] == "4"


def test_readers_of_a_deleted_segment(world: LogWorld) -> None:
    """
    A read in progress continues; a later one is out of range.
    """
    partition = filled(world, file_delete_delay_ms=0)
    world.disk.cold = True
    world.threads.slow = True
    reading = partition.read(0, PLENTY, Isolation.READ_UNCOMMITTED, True)
    deleting = partition.delete_before(4)
    world.threads.slow = False
    world.threads.work(1)  # the sync
    assert result(deleting) == 4
    world.clock.advance(0)
    world.threads.work()
    assert offsets(result(reading)) == [0, 1]
    del reading
    assert held(partition) == [4]
    error = refusal(lambda: partition.read(3, PLENTY, Isolation.READ_UNCOMMITTED, True))
    assert error.code is ErrorCode.OFFSET_OUT_OF_RANGE


def test_reader_of_a_removed_index_is_out_of_range(world: LogWorld) -> None:
    """
    A read that finds the files removed is out of range, and nothing is logged.
    """
    filled(world, file_delete_delay_ms=0)
    world.restart()
    partition = world.again()
    world.threads.slow = True
    reading = partition.read(0, PLENTY, Isolation.READ_UNCOMMITTED, True)
    deleting = partition.delete_before(4)
    world.threads.slow = False
    world.threads.work(1)
    assert result(deleting) == 4
    world.clock.advance(0)
    with capturedLogs() as logged:
        world.threads.work()
        assert refusal(lambda: reading).code is ErrorCode.OFFSET_OUT_OF_RANGE
    assert not logged


def test_time_search_restarts_after_a_deletion(world: LogWorld) -> None:
    """
    A search by time that finds files or a record deleted starts again with the rest.
    """
    partition = world.log_partition(segment_bytes=2 * SIZE, file_delete_delay_ms=0)
    for number in range(5):
        appended(partition, batch(timestamp=START_MS + number))
    epoch = partition.leader_epoch
    for slow_search_comes_first in (True, False):
        world.threads.slow = True
        searching, deleting = partition.find_time(0), partition.delete_before(partition.log_start + 2)
        for _ in range(2):  # the sync, and the writing of the log start
            world.threads.work(1)
        if slow_search_comes_first:
            world.threads.work()
        world.threads.slow = False
        world.clock.advance(0)
        while len(world.threads):
            world.threads.work()
        start = result(deleting)
        assert result(searching) == TimestampAndOffset(start, START_MS + start, epoch)


def test_log_start_is_synced_before_it_is_visible(world: LogWorld) -> None:
    """
    The log is synced, then the start is written in Kafka's format and synced, and only then visible.
    """
    partition = filled(world)
    world.threads.slow = True
    deleting = partition.delete_before(3)
    assert len(world.threads) == 1
    world.disk.done.clear()
    world.threads.work()
    assert world.disk.count("sync", file_name(4, ".log")) == world.disk.count("sync", file_name(2, ".snapshot")) == 1
    assert not (world.path / LOG_STARTS).exists()
    assert (partition.log_start, offsets(fetched(partition, 0)), logs(partition)[0]) == (0, [0, 1], "0")
    world.threads.work()
    assert (world.path / LOG_STARTS).read_bytes() == b"0\n1\nt 0 3\n"
    assert world.disk.count("sync", LOG_STARTS) == 1
    assert result(deleting) == partition.log_start == 3
    assert logs(partition)[0] == "0*"


@pytest.mark.parametrize("end", ["restart", "killed", "machine"])
def test_log_start_survives_a_restart(end: str, world: LogWorld) -> None:
    """
    The next process has the same log start, knows the producers, and removes leftover files.
    """
    partition = filled(world)
    result(partition.delete_before(3))
    if end == "machine":
        world.boot = "another boot"
    (world.restart if end == "restart" else world.killed)()
    partition = world.again()
    assert (partition.log_start, partition.log_end, logs(partition)) == (3, 5, ["0*", "2", "4"])
    world.clock.advance(0)
    assert logs(partition) == ["2", "4"]
    assert offsets(fetched(partition, 3)) == [3]
    assert refusal(lambda: fetched(partition, 2)).code is ErrorCode.OFFSET_OUT_OF_RANGE
    assert appended(partition, sequenced(1)).base_offset == 1
    assert appended(partition, sequenced(5)).base_offset == 5


def test_producer_snapshot_at_the_log_start_is_synced(world: LogWorld) -> None:
    """
    A process that opens a log without its beginning syncs the snapshot that it starts from: no batch contains the
    same.
    """
    result(filled(world).delete_before(4))
    world.kill()
    world.disk.done.clear()
    world.start()
    assert world.disk.count("sync", file_name(4, ".snapshot")) == 1
    assert world.disk.count("sync_folder", "t-0") == 1


def test_damage_before_the_log_start_loses_nothing(world: LogWorld) -> None:
    """
    A batch before the log start may be damaged after a power cut: those behind it had been synced.
    """
    partition = filled(world)
    result(partition.delete_before(3))
    path = partition.folder / file_name(2, ".log")
    data = bytearray(path.read_bytes())
    data[SIZE - 1] ^= 1
    path.write_bytes(data)
    world.boot = "another boot"
    with capturedLogs():
        world.killed()
        partition = world.again()
    assert (partition.log_start, partition.log_end, offsets(fetched(partition, 3))) == (3, 5, [3])


def test_synced_snapshot_is_not_rewritten(world: LogWorld) -> None:
    """
    Where a new segment is still empty, its synced snapshot is kept as it is.
    """
    partition = filled(world, retention_ms=0)
    world.now_ms += 1
    result(partition.expire())
    world.tick()
    assert partition.settled
    assert world.disk.count("write", file_name(5, ".snapshot")) == 1


def test_unfinished_deletions_are_finished_at_the_start(world: LogWorld) -> None:
    """
    Files that a crash kept from being renamed are removed at the next start, even if only some are left.
    """
    partition = filled(world)
    world.disk.failing["rename .log"] = EIO
    with capturedLogs() as logged:
        result(partition.delete_before(4))
    assert [event["log_level"] for event in logged] == [LogLevel.warn]
    assert logs(partition) == ["0", "2", "4"]
    world.disk.failing.clear()
    (partition.folder / file_name(0, ".log")).unlink()
    world.killed()
    partition = world.again()
    assert (partition.log_start, offsets(fetched(partition, 4))) == (4, [4])
    world.clock.advance(0)
    assert logs(partition) == ["4"]
    assert beside(partition, ".index") == beside(partition, ".index.deleted") == []


def test_log_start_behind_the_end(world: LogWorld) -> None:
    """
    Where records before the start are missing, the log continues empty from there, with a warning.
    """
    partition = filled(world)
    result(partition.delete_before(3))
    (world.path / LOG_STARTS).write_bytes(b"0\n1\nt 0 9\n")
    with capturedLogs() as logged:
        world.restart()
        partition = world.again()
    assert (partition.log_start, partition.log_end) == (9, 9)
    assert any("offsets 5 to 8 are missing after it" in event.get("fault", "") for event in logged)
    assert appended(partition, sequenced(5)).base_offset == 9


def test_folder_without_segments_continues_at_the_log_start(world: LogWorld) -> None:
    """
    Where all segments are deleted, no record that should be kept is missing.
    """
    partition = filled(world, 4)
    result(partition.delete_before(4))
    result(world.broker.stop())
    for path in partition.folder.glob("*.*index"):
        path.unlink()
    for path in partition.folder.glob("*.log"):
        path.unlink()
    with capturedLogs() as logged:
        world.start()
        assert (world.again().log_start, world.again().log_end) == (4, 4)
    assert not logged


def test_damaged_log_start_file_is_logged(world: LogWorld) -> None:
    """
    Logs then begin with their first segments.
    """
    result(filled(world).delete_before(3))
    (world.path / LOG_STARTS).write_bytes(b"0\n2\nt 0 3\n")
    with capturedLogs() as logged:
        world.restart()
    assert [event["log_level"] for event in logged if event["log_level"] is LogLevel.error] == [LogLevel.error]
    assert world.again().log_start == 2


def test_epochs_before_the_start_are_forgotten(world: LogWorld) -> None:
    """
    The epoch that the log begins in begins there, and those before it are gone, in the file too.
    """
    partition = filled(world, 2)
    world.restart()
    partition = world.again()
    appended(partition, batch(3))
    world.restart()
    partition = world.again()
    appended(partition, batch())
    first, second, third = (partition.leader_epoch - back for back in (2, 1, 0))
    result(partition.delete_before(3))
    assert partition.epoch_end(first) == EpochEnd(first, 3)
    assert partition.epoch_end(second) == EpochEnd(second, 5)
    assert partition.epoch_end(third) == EpochEnd(third, 6)
    world.killed()  # before that is in the file
    assert world.again().epoch_end(first) == EpochEnd(first, 3)
    world.restart()
    rows = (partition.folder / EPOCH_FILE).read_text().splitlines()
    assert rows[2:4] == [f"{second} 3", f"{third} 5"]


def test_new_segment_is_synced_before_the_last_is_deleted(world: LogWorld) -> None:
    """
    When a whole log is deleted that was not written to since the start, the snapshot beside the new segment is synced
    before the log start is written.
    """
    filled(world)
    world.restart()
    partition = world.again()
    world.now_ms += 8 * 86_400_000
    world.disk.done.clear()
    world.threads.slow = True
    expiring = partition.expire()
    world.threads.work()  # which finds out how old it is
    assert len(world.threads) == 1
    world.threads.work()
    assert world.disk.count("sync", file_name(5, ".snapshot")) == 1
    assert not (world.path / LOG_STARTS).exists()
    while len(world.threads):
        world.threads.work()
    result(expiring)
    assert partition.log_start == 5


class Late:
    """
    A thread that works at once, and reports the result when the test says so.
    """

    def __init__(self) -> None:
        self.is_late = False
        self.told = Deferred[None]()

    def __call__(self, call: Callable[[], Any]) -> Deferred[Any]:
        done: Deferred[Any] = execute(call)
        if not self.is_late:
            return done
        self.is_late = False
        return self.told.addCallback(lambda _: done)


def test_time_search_restarts_if_its_record_is_deleted(tmp_path: Path) -> None:
    """
    The record is deleted before the answer arrives.
    """
    late = Late()
    world = LogWorld(tmp_path, in_thread=late)
    partition = filled(world)
    late.is_late = True
    searching = partition.find_time(0)
    result(partition.delete_before(1))
    late.told.callback(None)
    assert result(searching) == TimestampAndOffset(1, START_MS, partition.leader_epoch)


def test_requests_share_one_write_of_log_starts(world: LogWorld) -> None:
    """
    Requests that arrive while the file of log starts is written share one more write.
    """
    topic = world.topic(partition_count=9)
    partitions = [world.again(index=index) for index in range(len(topic.partitions))]
    for partition in partitions:
        appended(partition, batch())
    for partition in partitions:
        result(partition.sync_all())
    world.threads.slow = True
    world.disk.done.clear()
    deleting = [partition.delete_before(1) for partition in partitions]
    while len(world.threads):
        world.threads.work()
    assert [result(each) for each in deleting] == [1] * 9
    assert world.disk.count("write", LOG_STARTS) == 2


def test_log_start_never_moves_back(world: LogWorld) -> None:
    """
    Of two successive requests, the one with the lower offset gets the current start, in the file too.
    """
    partition = filled(world)
    result(partition.sync_all())
    world.threads.slow = True
    deleting = [partition.delete_before(offset) for offset in (4, 1)]
    while len(world.threads):
        world.threads.work()
    assert [result(each) for each in deleting] == [4, 4]
    assert (world.path / LOG_STARTS).read_bytes() == b"0\n1\nt 0 4\n"


@pytest.mark.parametrize("error", [ENOSPC, EIO])
def test_failed_write_of_the_log_start_deletes_nothing(error: int, world: LogWorld) -> None:
    """
    The client gets an error, and it is logged; once the file can be written, deletion works again.
    """
    partition = filled(world)
    world.disk.failing[f"write {LOG_STARTS}"] = error
    with capturedLogs() as logged:
        assert refusal(lambda: partition.delete_before(4)).code is ErrorCode.KAFKA_STORAGE_ERROR
        assert (partition.log_start, offsets(fetched(partition, 0)), logs(partition)[0]) == (0, [0, 1], "0")
        appended(partition, sequenced(5))
        world.disk.failing.clear()
        assert result(partition.delete_before(4)) == 4
    assert [event["log_level"] for event in logged] == [LogLevel.critical, LogLevel.info]


def test_failed_sync_deletes_nothing(world: LogWorld) -> None:
    """
    A failed sync takes the partition offline.
    """
    partition = filled(world)
    world.disk.failing["sync .log"] = EIO
    with capturedLogs():
        assert refusal(lambda: partition.delete_before(4)).code is ErrorCode.KAFKA_STORAGE_ERROR
    assert (partition.offline, logs(partition)) == (True, ["0", "2", "4"])
    assert not (world.path / LOG_STARTS).exists()


def test_recreated_topic_does_not_inherit_the_log_start(world: LogWorld) -> None:
    """
    The process may end in any way.
    """
    result(filled(world).delete_before(3))
    result(world.broker.delete_topic(world.again().topic.id))
    assert world.log_partition().log_start == 0
    world.killed()
    appended(world.again(), batch())
    assert (world.again().log_start, offsets(fetched(world.again(), 0))) == (0, [0])
    assert (world.path / LOG_STARTS).read_bytes() == b"0\n0\n"


def test_recreated_topic_after_a_crash(world: LogWorld) -> None:
    """
    The process dies before the old line is removed from the file.
    """
    result(filled(world).delete_before(3))
    result(world.broker.delete_topic(world.again().topic.id))
    world.killed()
    assert (world.path / LOG_STARTS).read_bytes() == b"0\n1\nt 0 3\n"
    assert world.log_partition().log_start == 0
    assert (world.path / LOG_STARTS).read_bytes() == b"0\n0\n"


def test_stop_waits_for_the_write_of_a_log_start(world: LogWorld) -> None:
    """
    The folder stays locked as long as a thread is busy in it.
    """
    filled(world)
    world.restart()
    partition = world.again()
    world.threads.slow = True
    deleting = partition.delete_before(4)
    stopping = world.broker.stop()
    assert not stopping.called
    while len(world.threads):
        world.threads.work()
    result(stopping)
    assert result(deleting) == 4


def test_delayed_removals_end_with_their_topic(world: LogWorld) -> None:
    """
    Files due for removal are removed with the topic; new ones may soon have their names.
    """
    partition = filled(world, file_delete_delay_ms=2000)
    result(partition.delete_before(4))
    result(world.broker.delete_topic(partition.topic.id))
    world.disk.done.clear()
    world.clock.advance(3)
    assert not world.disk.count("remove")


def test_deleted_segments_hold_no_files_or_memory(world: LogWorld) -> None:
    filled(world)
    world.restart()
    partition = world.again()
    fetched(partition, 0)
    result(partition.delete_before(4))
    assert {file.path.name for file in world.disk.opened if file.path.suffix == ".log"} == {file_name(4, ".log")}
    assert held(partition) == [4]


def test_no_file_is_renamed_after_the_topic_is_deleted(tmp_path: Path) -> None:
    turns = Turns()
    world = LogWorld(tmp_path, in_turns=turns)
    partition = filled(world)
    result(partition.delete_before(4))
    result(world.broker.delete_topic(partition.topic.id))
    while turns.waiting:
        turns.step()
    assert not world.disk.count("rename", ".log")


def test_retention_by_size(world: LogWorld) -> None:
    """
    The oldest segments are deleted as long as the rest is at least retention.bytes.
    """
    partition = filled(world, 7, retention_bytes=3 * SIZE)
    result(partition.expire())
    assert (partition.log_start, logs(partition)) == (4, ["0*", "2*", "4", "6"])
    result(partition.expire())
    assert partition.log_start == 4


def test_retention_by_time(world: LogWorld) -> None:
    """
    A segment is deleted when its largest timestamp is too old; for the last one a new segment is begun.
    """
    partition = world.log_partition(segment_bytes=2 * SIZE, retention_ms=1000)
    for later_ms in (0, 10, 5, 600, 300):
        appended(partition, at_times(START_MS + later_ms))
    expected = {1010: 0, 1011: 2, 1300: 2, 1600: 2, 1601: 5}
    for passed_ms, log_start in expected.items():
        world.now_ms = START_MS + passed_ms
        result(partition.expire())
        assert partition.log_start == log_start, passed_ms
    assert logs(partition) == ["0*", "2*", "4*", "5"]
    assert appended(partition, batch()).base_offset == 5
    world.restart()
    assert (world.again().log_start, world.again().log_end) == (5, 6)


@pytest.mark.parametrize("sent", [at_times(-1), sealed(at_times(START_MS), max_timestamp=START_MS - 1)])
def test_segments_without_valid_timestamps_age_by_file_time(sent: Batch, world: LogWorld) -> None:
    """
    The time of the last write counts where a timestamp is missing or impossible.
    """
    partition = world.log_partition(retention_ms=1000)
    appended(partition, sent)
    changed_ms = world.disk.changed_ms(partition.folder / file_name(0, ".log"))
    for now_ms, log_start in ((changed_ms + 1000, 0), (changed_ms + 1001, 1)):
        world.now_ms = now_ms
        result(partition.expire())
        assert partition.log_start == log_start


def test_append_renews_the_age_of_a_segment(world: LogWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    An append counts after the age of its segment was looked up.
    """
    partition = world.log_partition(retention_ms=1000)
    appended(partition, batch())
    world.now_ms += 2000
    look = segment_deletion._pieces

    def pieces(*given: Any) -> Any:
        found = look(*given)
        appended(partition, batch(timestamp=world.now_ms))
        return found

    monkeypatch.setattr(segment_deletion, "_pieces", pieces)
    result(partition.expire())
    assert partition.log_start == 0


def test_retention_on_a_full_disk(world: LogWorld) -> None:
    """
    Where no new segment can be begun, the full ones are deleted all the same.
    """
    partition = filled(world, retention_ms=1000)
    world.now_ms += 2000
    world.disk.failing["write .snapshot"] = ENOSPC
    with capturedLogs():
        result(partition.expire())
    assert (partition.log_start, logs(partition)) == (4, ["0*", "2*", "4"])
    world.disk.failing.clear()
    result(partition.expire())
    assert (partition.log_start, logs(partition)) == (5, ["0*", "2*", "4*", "5"])


def test_rounds(world: LogWorld) -> None:
    """
    The broker lets go of what is old by itself, in partitions that nobody has asked for too, but for the state of
    coordinators, and opens none that has no records.
    """
    filled(world)
    world.topic("never used")
    world.state_log().append([(b"a", b"1")])
    world.restart()
    world.now_ms += 8 * 86_400_000
    world.clock.advance(30)
    world.clock.advance(0)
    assert world.again().log_start == 5
    assert list(world.path.glob("never*")) == []
    assert world.disk.count("rename", file_name(0, ".log")) == 1
    result(world.broker.stop())
    assert not world.clock.getDelayedCalls()


def test_deleted_partition_expires_nothing(world: LogWorld) -> None:
    """
    Nothing more is deleted, even if the request had begun.
    """
    partition = filled(world)
    world.threads.slow = True
    deleting = partition.delete_before(4)
    world.broker.delete_topic(partition.topic.id)
    while len(world.threads):
        world.threads.work()
    assert refusal(lambda: deleting).code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert partition.log_start == 0
    with pytest.raises(Exception, match="UNKNOWN_TOPIC_OR_PARTITION"):
        partition.append(batch(), Origin.CLIENT)


def test_a_segment_that_begins_where_the_log_is_to_begin(world: LogWorld) -> None:
    """
    What tells of the producers there is sure before the segment goes that told of them, whenever the new one begins;
    and before the start of the log is kept, if it begins before that.
    """
    for number, name in enumerate(("before", "after")):
        partition = world.log_partition(name, segment_bytes=SIZE)
        appended(partition, sequenced(0))
        world.threads.slow = True
        world.disk.done.clear()
        deleting = partition.delete_before(1)
        for _ in range(number):  # the sync, and not yet that the log start is kept
            world.threads.work()
        appended(partition, sequenced(1))
        while len(world.threads):
            world.threads.work(number - 1)  # what would keep the start too early comes first
        assert result(deleting) == 1
        done = world.disk.done
        if name == "before":
            assert done.index(("sync", file_name(1, ".snapshot"))) < done.index(("write", LOG_STARTS))
        assert done.index(("sync", file_name(1, ".snapshot"))) < done.index(("rename", file_name(0, ".log"))), name
        world.threads.slow = False
