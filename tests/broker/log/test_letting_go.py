"""
The oldest segments of a log go, and their files with them.
"""

import gc
from collections.abc import Callable
from errno import EIO, ENOSPC
from pathlib import Path
from typing import Any

import pytest
from twisted.internet.defer import Deferred, execute
from twisted.logger import LogLevel, capturedLogs

from kgateway.broker.epochs import EPOCH_FILE
from kgateway.broker.log import letting_go
from kgateway.broker.log.kept_offsets import LOG_STARTS
from kgateway.broker.log.partition import LogPartition
from kgateway.broker.log.segment import Segment, file_name
from kgateway.cluster.partition import EpochEnd, Found, Isolation, Origin
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
from tests.broker.log.log_world import LogWorld
from tests.broker.log.making import Turns
from tests.records.sealed import sealed

SIZE = len(batch().data)
ROUND_S = 300


@pytest.fixture
def world(tmp_path: Path) -> LogWorld:
    return LogWorld(tmp_path)


def filled(world: LogWorld, count: int = 5, **config: Any) -> LogPartition:
    """
    A partition with two batches in each segment, of a record each.
    """
    partition = world.log_partition(segment_bytes=2 * SIZE, **config)
    for number in range(count):
        appended(partition, sequenced(number))
    return partition


def logs(partition: LogPartition) -> list[str]:
    """
    The segments there are files of; those that were let go have a star.
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


def test_segments_before_the_start_go(world: LogWorld) -> None:
    """
    What is wholly before the log start gets another name, and is removed some time later; what is not, stays.
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


def test_the_last_segment_stays(world: LogWorld) -> None:
    """
    Where all records go, the segment that is written to is kept: its bytes go when it is old.
    """
    partition = filled(world)
    result(partition.delete_before(5))
    assert logs(partition)[-1] == "4"
    assert appended(partition, sequenced(5)).base_offset == 5
    assert logs(partition)[-1] == "4"


def test_readers_of_what_goes(world: LogWorld) -> None:
    """
    Who reads a segment when it goes reads on; who has not begun to is told that it is out of range.
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


def test_readers_that_need_an_index_that_is_gone(world: LogWorld) -> None:
    """
    Who comes too late for the files is told that what he reads is out of range, and the operator nothing.
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


def test_searches_in_what_goes(world: LogWorld) -> None:
    """
    A search by time that finds files gone, or a record, begins again with what is left.
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
        assert result(searching) == Found(start, START_MS + start, epoch)


def test_where_the_log_begins_is_sure_before_it_is_shown(world: LogWorld) -> None:
    """
    The log is synced, then the start written in Kafka's form and synced, and only then does anybody see it.
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
def test_the_start_comes_back(end: str, world: LogWorld) -> None:
    """
    The next process begins where the last one did, knows the producers, and removes what that one has left.
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


def test_what_tells_of_producers_outlasts_the_machine(world: LogWorld) -> None:
    """
    A process that finds a log whose beginning is gone syncs the snapshot that it goes on from: no batch tells the same.
    """
    result(filled(world).delete_before(4))
    world.kill()
    world.disk.done.clear()
    world.start()
    assert world.disk.count("sync", file_name(4, ".snapshot")) == 1
    assert world.disk.count("sync_folder", "t-0") == 1


def test_damage_in_what_is_gone(world: LogWorld) -> None:
    """
    A batch before the log start may be damaged when the machine is on again: those behind it had been synced.
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


def test_a_snapshot_that_is_sure_is_not_written_again(world: LogWorld) -> None:
    """
    Where a segment was begun and nothing written to it, the snapshot beside it is left as it was synced.
    """
    partition = filled(world, retention_ms=0)
    world.now_ms += 1
    result(partition.expire())
    world.tick()
    assert partition.settled
    assert world.disk.count("write", file_name(5, ".snapshot")) == 1


def test_segments_that_came_back(world: LogWorld) -> None:
    """
    What a crash has kept from getting another name goes at the next start, be it in part.
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


def test_a_start_behind_the_end(world: LogWorld) -> None:
    """
    Where records before the start are missing, the log goes on empty from there, and the operator is told.
    """
    partition = filled(world)
    result(partition.delete_before(3))
    (world.path / LOG_STARTS).write_bytes(b"0\n1\nt 0 9\n")
    with capturedLogs() as logged:
        world.restart()
        partition = world.again()
    assert (partition.log_start, partition.log_end) == (9, 9)
    assert any("offsets 5 to 8 are missing behind it" in event.get("fault", "") for event in logged)
    assert appended(partition, sequenced(5)).base_offset == 9


def test_a_folder_without_segments(world: LogWorld) -> None:
    """
    Where all segments are gone the log goes on from its start; nothing that was wanted is missing.
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


def test_a_damaged_file_of_starts(world: LogWorld) -> None:
    """
    It is told, and logs begin with their first segments.
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


def test_a_new_segment_is_sure_before_the_last_one_goes(world: LogWorld) -> None:
    """
    Where all of a log goes that nobody has written to since the start, the snapshot beside the new segment is synced
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
    A thread that does at once what it is given, and tells of it when the test says so.
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


def test_records_that_go_when_they_are_found(tmp_path: Path) -> None:
    """
    A search by time whose record goes before the answer comes begins again.
    """
    late = Late()
    world = LogWorld(tmp_path, in_thread=late)
    partition = filled(world)
    late.is_late = True
    searching = partition.find_time(0)
    result(partition.delete_before(1))
    late.told.callback(None)
    assert result(searching) == Found(1, START_MS, partition.leader_epoch)


def test_many_share_one_write(world: LogWorld) -> None:
    """
    While the file of log starts is written, all that comes waits for one more writing of it.
    """
    topic = world.topic(partition_count=9)
    partitions = [world.again(index=index) for index in range(len(topic.partitions))]
    for partition in partitions:
        appended(partition, batch())
    for partition in partitions:
        result(partition.all_synced())
    world.threads.slow = True
    world.disk.done.clear()
    deleting = [partition.delete_before(1) for partition in partitions]
    while len(world.threads):
        world.threads.work()
    assert [result(each) for each in deleting] == [1] * 9
    assert world.disk.count("write", LOG_STARTS) == 2


def test_a_later_start_is_not_undone(world: LogWorld) -> None:
    """
    Of two who come one after the other, the one that wants less gets what there is, in the file too.
    """
    partition = filled(world)
    result(partition.all_synced())
    world.threads.slow = True
    deleting = [partition.delete_before(offset) for offset in (4, 1)]
    while len(world.threads):
        world.threads.work()
    assert [result(each) for each in deleting] == [4, 4]
    assert (world.path / LOG_STARTS).read_bytes() == b"0\n1\nt 0 4\n"


@pytest.mark.parametrize("error", [ENOSPC, EIO])
def test_a_start_that_cannot_be_written(error: int, world: LogWorld) -> None:
    """
    Nothing goes, the client is told, and the operator; once it can be written, it works again.
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


def test_a_log_that_cannot_be_synced(world: LogWorld) -> None:
    """
    A sync that fails takes the partition offline, and nothing goes.
    """
    partition = filled(world)
    world.disk.failing["sync .log"] = EIO
    with capturedLogs():
        assert refusal(lambda: partition.delete_before(4)).code is ErrorCode.KAFKA_STORAGE_ERROR
    assert (partition.offline, logs(partition)) == (True, ["0", "2", "4"])
    assert not (world.path / LOG_STARTS).exists()


def test_a_topic_of_the_same_name(world: LogWorld) -> None:
    """
    The log start of a deleted topic is not that of another one with its name, however the process ends.
    """
    result(filled(world).delete_before(3))
    result(world.broker.delete_topic(world.again().topic.id))
    assert world.log_partition().log_start == 0
    world.killed()
    appended(world.again(), batch())
    assert (world.again().log_start, offsets(fetched(world.again(), 0))) == (0, [0])
    assert (world.path / LOG_STARTS).read_bytes() == b"0\n0\n"


def test_a_topic_of_the_same_name_after_a_crash(world: LogWorld) -> None:
    """
    Nor if the process dies before the file tells nothing of it any more.
    """
    result(filled(world).delete_before(3))
    result(world.broker.delete_topic(world.again().topic.id))
    world.killed()
    assert (world.path / LOG_STARTS).read_bytes() == b"0\n1\nt 0 3\n"
    assert world.log_partition().log_start == 0
    assert (world.path / LOG_STARTS).read_bytes() == b"0\n0\n"


def test_stopping_while_a_start_is_written(world: LogWorld) -> None:
    """
    Nobody else gets the folder as long as a thread is busy in it.
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


def test_files_of_a_deleted_topic_are_left_alone(world: LogWorld) -> None:
    """
    What was to be removed later is removed with the topic; of its name there may soon be others.
    """
    partition = filled(world, file_delete_delay_ms=2000)
    result(partition.delete_before(4))
    result(world.broker.delete_topic(partition.topic.id))
    world.disk.done.clear()
    world.clock.advance(3)
    assert not world.disk.count("remove")


def test_nothing_is_held(world: LogWorld) -> None:
    """
    Of what was let go no file is open, and nothing in memory.
    """
    filled(world)
    world.restart()
    partition = world.again()
    fetched(partition, 0)
    result(partition.delete_before(4))
    assert {file.path.name for file in world.disk.opened if file.path.suffix == ".log"} == {file_name(4, ".log")}
    assert held(partition) == [4]


def test_files_that_would_be_renamed_too_late(tmp_path: Path) -> None:
    """
    What has not got its other name when the topic goes does not get it any more.
    """
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
    As many segments go as leave no less than is to be kept, of the oldest.
    """
    partition = filled(world, 7, retention_bytes=3 * SIZE)
    result(partition.expire())
    assert (partition.log_start, logs(partition)) == (4, ["0*", "2*", "4", "6"])
    result(partition.expire())
    assert partition.log_start == 4


def test_retention_by_time(world: LogWorld) -> None:
    """
    A segment goes when the largest timestamp in it is too old; the last one too, and another one is begun.
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
def test_timestamps_that_cannot_be(sent: Batch, world: LogWorld) -> None:
    """
    Where no timestamp is there, or one that cannot be, it counts when the file was last written to.
    """
    partition = world.log_partition(retention_ms=1000)
    appended(partition, sent)
    changed_ms = world.disk.changed_ms(partition.folder / file_name(0, ".log"))
    for now_ms, log_start in ((changed_ms + 1000, 0), (changed_ms + 1001, 1)):
        world.now_ms = now_ms
        result(partition.expire())
        assert partition.log_start == log_start


def test_what_comes_once_ages_are_known(world: LogWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    A segment that was written to since its age was looked up is as old as what was written.
    """
    partition = world.log_partition(retention_ms=1000)
    appended(partition, batch())
    world.now_ms += 2000
    look = letting_go._ages

    def ages(*given: Any) -> Any:
        found = look(*given)
        appended(partition, batch(timestamp=world.now_ms))
        return found

    monkeypatch.setattr(letting_go, "_ages", ages)
    result(partition.expire())
    assert partition.log_start == 0


def test_retention_on_a_full_disk(world: LogWorld) -> None:
    """
    Where no new segment can be begun, the full ones go all the same.
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


def test_who_asks_too_late(world: LogWorld) -> None:
    """
    Of a partition that is gone nothing goes, also where that was begun.
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
