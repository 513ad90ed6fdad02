"""
Logs that take long to open.
"""

from errno import EIO, EMFILE
from pathlib import Path

import pytest
from twisted.internet.task import Clock
from twisted.logger import LogLevel, capturedLogs, formatEvent

from kgateway.broker.log.data_folder.session import CLEAN
from kgateway.broker.log.partition.partition import LogPartition
from kgateway.broker.log.recovery import segment_recovery
from kgateway.broker.log.segments import batch_scan
from kgateway.broker.log.segments.file_names import file_name
from kgateway.cluster.partition import Isolation
from kgateway.wire.errors import ErrorCode
from tests.broker.behaviour import appended, batch, refusal, result
from tests.broker.log.log_brokers import Turns
from tests.broker.log.log_world import LogWorld

SIZE = len(batch().data)


class HastyClock(Clock):
    """
    A clock that advances whenever it is read.
    """

    def seconds(self) -> float:
        self.rightNow += 0.015
        return super().seconds()


@pytest.fixture
def world(tmp_path: Path) -> LogWorld:
    return LogWorld(tmp_path)


@pytest.fixture
def slow(world: LogWorld, monkeypatch: pytest.MonkeyPatch) -> LogWorld:
    """
    A world in which it takes many turns to open a partition with twelve batches after a crash.
    """
    monkeypatch.setattr(segment_recovery, "_BATCHES_A_STEP", 2)
    monkeypatch.setattr(batch_scan, "SCAN_BYTES", 2 * SIZE)
    partition = world.log_partition()
    for _ in range(12):
        appended(partition, batch())
    world.kill()
    world.start(in_turns=Turns(), clock=HastyClock())
    return world


def turns(world: LogWorld) -> Turns:
    found: Turns = world._options["in_turns"]
    return found


def open_by_turns(world: LogWorld) -> LogPartition:
    while turns(world).waiting:
        turns(world).step()
    return world.again()


def test_partition_has_no_leader_until_it_is_recovered(slow: LogWorld) -> None:
    """
    Clients retry while the log is scanned; then the partition is there unchanged.
    """
    for _ in range(3):
        error = refusal(slow.again)
        assert error.code is ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert error.message == "t-0 is being recovered; try again"
    partition = open_by_turns(slow)
    assert partition.high_watermark == 12
    assert partition.read(0, 1, Isolation.READ_UNCOMMITTED, True)
    assert slow.again() is partition


def test_written_partitions_are_recovered_without_requests(slow: LogWorld) -> None:
    """
    After a crash every log is opened unasked; a partition without a folder costs nothing.
    """
    steps = 0
    while turns(slow).waiting:
        turns(slow).step()
        steps += 1
    assert steps > 5
    slow.disk.done.clear()
    assert slow.again().log_end == 12
    assert slow.disk.done == []


def test_topic_deleted_during_recovery_stays_deleted(slow: LogWorld) -> None:
    """
    A new topic of its name is opened by itself.
    """
    refusal(slow.again)
    topic = slow.broker.view().topics["t"]
    result(slow.broker.delete_topic(topic.id))
    again = slow.topic()
    with capturedLogs() as logged:
        while turns(slow).waiting:
            turns(slow).step()
    assert [event for event in logged if event["log_level"] is LogLevel.error] == []
    assert refusal(lambda: slow.broker.partition(topic.id, 0)).code is ErrorCode.UNKNOWN_TOPIC_ID
    assert slow.broker.partition(again.id, 0).log_end == 0
    turns(slow).until(slow.broker.stop())
    assert (slow.path / CLEAN).exists()


def test_open_partition_is_not_opened_again(world: LogWorld) -> None:
    appended(world.log_partition(), batch())
    world.kill()
    world.start(in_turns=Turns())
    partition = world.again()
    assert open_by_turns(world) is partition


def test_partitions_without_a_folder_are_not_opened(world: LogWorld) -> None:
    """
    Even after a crash nothing is created for partitions that were never written to.
    """
    world.topic("t", 3)
    world.killed()
    assert list(world.path.glob("t-*")) == []


def test_recovered_partition_has_the_grown_topic(slow: LogWorld) -> None:
    refusal(slow.again)
    grown = result(slow.broker.add_partitions(slow.broker.view().topics["t"].id, 3))
    assert open_by_turns(slow).topic == grown


def test_failed_recovery_is_logged_and_retried(slow: LogWorld) -> None:
    """
    A failure in the middle is logged; the next request starts recovery from the beginning.
    """
    refusal(slow.again)
    slow.disk.failing["read_at"] = EIO
    with capturedLogs() as logged:
        while turns(slow).waiting:
            turns(slow).step()
    assert [formatEvent(event) for event in logged if event["log_level"] is LogLevel.error] == [
        f"t-0 cannot be opened: Input/output error ({slow.path / 't-0' / file_name(0, '.log')})"
    ]
    slow.disk.failing.clear()
    slow._options["clock"].advance(5)
    refusal(slow.again)
    assert open_by_turns(slow).log_end == 12


@pytest.mark.parametrize("operation", ["open_folder t-0", "open .timeindex"])
def test_a_log_that_cannot_be_synced_for_want_of_descriptors(operation: str, world: LogWorld) -> None:
    """
    It is refused as one that cannot be read is: clients and the operator are told why, and nobody tries again for five
    seconds.
    """
    partition = world.log_partition()
    for _ in range(3):
        appended(partition, batch())
    partition.settle()
    world.kill()
    world.disk.failing[operation] = EMFILE
    with capturedLogs() as logged:
        world.start(topic_defaults={"kgateway.acks.fsync": "true"})
        world.disk.failing.clear()
        error = refusal(world.again)
    assert error.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert str(error.message).startswith("t-0 cannot be opened: Too many open files (")
    assert [formatEvent(event) for event in logged if event["log_level"] is LogLevel.error] == [error.message]
    assert [event for event in logged if event["log_level"] is LogLevel.critical] == []
    world.clock.advance(5)
    assert world.again().synced_offset == 3


def test_many_segments_after_a_clean_stop(world: LogWorld) -> None:
    """
    They are looked at in a thread; what clients and the operator are told meanwhile is true where nothing has crashed.
    """
    partition = world.log_partition(segment_bytes=SIZE)
    for _ in range(10):
        appended(partition, batch())
    world.restart()
    world.threads.slow = True
    with capturedLogs() as logged:
        error = refusal(world.again)
    assert (error.code, error.message) == (
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        "t-0 is being recovered; try again",
    )
    assert [formatEvent(event) for event in logged] == ["recovering t-0"]
    work(world)
    assert world.again().log_end == 10


def half_a_batch(world: LogWorld) -> Path:
    """
    The machine dies while a batch is being written; threads are slow from now on.
    """
    appended(world.log_partition(), batch())
    log = world.path / "t-0" / file_name(0, ".log")
    world.kill()
    log.write_bytes(log.read_bytes() + batch().data[:10])
    world.boot = "another boot"
    world.start(in_turns=Turns())
    world.threads.slow = True
    return log


def until_a_thread_is_busy(world: LogWorld) -> None:
    while turns(world).waiting:
        turns(world).step()
    assert len(world.threads) == 1


def work(world: LogWorld) -> None:
    while len(world.threads):
        world.threads.work()


def test_the_reactor_does_not_wait_for_the_disk(world: LogWorld) -> None:
    """
    What is cut off is cut off, and synced, in a thread; the partition is there when that is done.
    """
    log = half_a_batch(world)
    until_a_thread_is_busy(world)
    assert refusal(world.again).code is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert (log.stat().st_size, world.disk.count("sync", log.name)) == (SIZE + 10, 0)
    work(world)
    assert open_by_turns(world).log_end == 1
    assert (log.stat().st_size, world.disk.count("sync", log.name)) == (SIZE, 1)


def test_a_topic_is_gone_when_no_thread_opens_it(world: LogWorld) -> None:
    """
    Its folder is put away after that: what a thread does there is done to no other topic of the name.
    """
    log = half_a_batch(world)
    until_a_thread_is_busy(world)
    deleted = world.broker.delete_topic(world.broker.view().topics["t"].id)
    world.threads.work(1)  # the journal
    assert (len(world.threads), log.exists()) == (1, True)
    world.disk.failing["truncate .log"] = EIO
    with capturedLogs() as logged:
        work(world)
        result(deleted)
    assert [event for event in logged if event["log_level"] is LogLevel.error] == []
    assert not log.exists()


def test_a_broker_has_stopped_when_no_thread_opens_a_log(world: LogWorld) -> None:
    """
    Until then the folder is its own.
    """
    log = half_a_batch(world)
    until_a_thread_is_busy(world)
    stopped = world.broker.stop()
    while turns(world).waiting:
        turns(world).step()
    assert not stopped.called
    work(world)
    turns(world).until(stopped)
    assert log.stat().st_size == SIZE
