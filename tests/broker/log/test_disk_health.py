"""
Full and failing disks.
"""

from contextlib import suppress
from errno import EIO, ENOSPC
from pathlib import Path

import pytest
from twisted.logger import LogLevel, capturedLogs, formatEvent

from kgateway.broker.log.segments.file_names import file_name
from kgateway.cluster.partition import Origin
from kgateway.cluster.view import NewTopic
from kgateway.interfaces import IPartition
from kgateway.wire.errors import ErrorCode, KafkaError
from tests.broker.behaviour import appended, batch, fetched, offsets, refusal, result, sequenced
from tests.broker.log.log_world import LogWorld

SIZE = len(batch().data)


@pytest.fixture
def world(tmp_path: Path) -> LogWorld:
    return LogWorld(tmp_path)


def refused(partition: IPartition) -> str:
    error = refusal(lambda: partition.append(sequenced(partition.log_end), Origin.CLIENT))
    assert error.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert error.message
    return error.message


@pytest.mark.parametrize(
    "operation",
    ["append .log", f"open {file_name(2, '.log')}", "open .index", "append .index", "write .snapshot", "write"],
)
def test_a_full_disk(operation: str, world: LogWorld) -> None:
    """
    A batch that cannot be written is refused, and leaves nothing; with space again appends continue. The log has the
    beginning and the end.
    """
    partition = world.log_partition(segment_bytes=2 * SIZE, index_interval_bytes=0)
    for _ in range(2):
        appended(partition, sequenced(partition.log_end))
    world.disk.failing[operation] = ENOSPC
    with capturedLogs() as logged:
        for _ in range(2):
            assert refused(partition).startswith("the log cannot be written: No space left on device")
        assert (partition.log_end, partition.high_watermark) == (2, 2)
        assert offsets(fetched(partition, 0)) == [0, 1]
        world.disk.failing.clear()
        for _ in range(3):
            appended(partition, sequenced(partition.log_end))
    assert [event["log_level"] for event in logged] == [LogLevel.critical, LogLevel.info]
    world.restart()
    partition = world.again()
    assert [offset for start in (0, 2, 4) for offset in offsets(fetched(partition, start))] == [0, 1, 2, 3, 4]
    assert appended(partition, sequenced(4)).base_offset == 4


def test_trouble_ends_when_all_of_it_has_ended(world: LogWorld) -> None:
    """
    The end is logged once no write is known to fail, and repeated failures with the same reason are not.
    """
    first, second = world.log_partition("first"), world.log_partition("second")
    world.disk.failing["append .log"] = ENOSPC
    with capturedLogs() as logged:
        for partition in (first, second, first):
            refused(partition)
        world.disk.failing.clear()
        appended(first, batch())
        assert [event["log_level"] for event in logged] == [LogLevel.critical]
        appended(second, batch())
        assert [event["log_level"] for event in logged] == [LogLevel.critical, LogLevel.info]


def test_lasting_trouble_is_repeated_seldom(world: LogWorld) -> None:
    """
    Clients retry all the time; one line in ten minutes is enough.
    """
    partition = world.log_partition()
    world.disk.failing["append .log"] = ENOSPC
    with capturedLogs() as logged:
        for _ in range(120):
            refused(partition)
            world.clock.advance(10)
        assert [event["log_level"] for event in logged] == [LogLevel.critical] * 2
        world.disk.failing.clear()
        appended(partition, batch())
    assert [event["log_level"] for event in logged] == [LogLevel.critical] * 2 + [LogLevel.info]


def test_trouble_that_comes_and_goes_is_not_logged_each_time(world: LogWorld) -> None:
    """
    A disk that is nearly full takes small batches. The last line is true a minute later at the latest.
    """
    partition = world.log_partition()
    with capturedLogs() as logged:
        for _ in range(5):
            world.disk.failing["append .log"] = ENOSPC
            refused(partition)
            world.disk.failing.clear()
            appended(partition, sequenced(partition.log_end))
            world.clock.advance(1)
        assert [event["log_level"] for event in logged] == [LogLevel.critical, LogLevel.info]
        world.disk.failing["append .log"] = ENOSPC
        for _ in range(7):
            refused(partition)
            world.clock.advance(10)
    assert [event["log_level"] for event in logged] == [LogLevel.critical, LogLevel.info, LogLevel.critical]


@pytest.mark.parametrize("operation", ["append .log", "write .snapshot", "open_folder t-0"])
def test_trouble_ends_with_its_topic(operation: str, world: LogWorld) -> None:
    """
    A deleted topic cannot be written any more; the end is logged once others can be.
    """
    first, second = world.log_partition("t", acks_fsync=True), world.log_partition("at")
    world.disk.failing[operation] = ENOSPC
    with suppress(KafkaError):
        waiting = first.append(batch(), Origin.CLIENT).committed
        if waiting:
            waiting.addErrback(lambda _: None)
    world.tick()
    assert len(first._runtime.health.failing) == 1
    world.disk.failing["append .log"] = ENOSPC
    refused(second)
    with capturedLogs() as logged:
        result(world.broker.delete_topic(first.topic.id))
        assert list(first._runtime.health.failing) == ["at-0"]
        world.disk.failing.clear()
        appended(second, batch())
    assert [event["what"] for event in logged if event["log_level"] is LogLevel.info] == ["at-0"]


def test_a_full_disk_and_topics(world: LogWorld) -> None:
    """
    A topic that cannot be stored is not created, and one whose deletion cannot be stored is kept; with space again
    both succeed.
    """
    partition = world.log_partition()
    world.disk.failing["append .topics"] = ENOSPC
    for change in (
        lambda: world.broker.create_topic(NewTopic("new", 1)),
        lambda: world.broker.add_partitions(partition.topic.id, 2),
        lambda: world.broker.delete_topic(partition.topic.id),
        world.state_log,
    ):
        error = refusal(change)
        assert error.code is ErrorCode.KAFKA_STORAGE_ERROR
        assert "cannot be changed: No space left on device" in str(error)
    assert [(topic.name, len(topic.partitions)) for topic in world.broker.view().topics.values()] == [("t", 1)]
    appended(partition, batch())
    world.disk.failing.clear()
    world.topic("new")
    result(world.broker.delete_topic(partition.topic.id))
    world.restart()
    assert list(world.broker.view().topics) == ["new"]


def test_a_full_disk_and_producer_ids(world: LogWorld) -> None:
    """
    An id that might be assigned twice is not assigned.
    """
    world.disk.failing["write"] = ENOSPC
    error = refusal(world.broker.new_producer_id)
    assert error.code is ErrorCode.KAFKA_STORAGE_ERROR
    world.disk.failing.clear()
    assert result(world.broker.new_producer_id()) == 0


@pytest.mark.parametrize("is_offline", [False, True])
def test_no_snapshot_of_what_cannot_be_synced(is_offline: bool, world: LogWorld) -> None:
    """
    A coordinator is told if its log, and thus the snapshot of its state, may not be durable.
    """
    log = world.state_log("g")
    log.append([(b"a", b"1")])
    world.disk.failing["sync .log"] = EIO
    if is_offline:
        result(world.again("__consumer_offsets", ord("g") % 8).sync_all())
    error = refusal(lambda: log.snapshot(iter([(b"a", b"1")])))
    assert error.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert list(world.path.glob("*/kgateway.state-*")) == []


def test_one_block_of_ids_for_all_who_wait(world: LogWorld) -> None:
    """
    Everybody who asks during a reservation gets an id of the reserved block.
    """
    world.threads.slow = True
    waiting = [world.broker.new_producer_id() for _ in range(3)]
    world.threads.work()
    assert [result(each) for each in waiting] == [0, 1, 2]
    assert len(world.threads) == 0


@pytest.mark.parametrize("operation", ["names t-0", "open .log", "write partition.metadata", "make_folder"])
def test_a_partition_that_cannot_be_opened(operation: str, world: LogWorld) -> None:
    """
    Clients get KAFKA_STORAGE_ERROR, and the log has the reason once; a retry after five seconds may succeed.
    """
    topic = world.topic()
    world.disk.failing[operation] = EIO
    with capturedLogs() as logged:
        error = refusal(lambda: world.broker.partition(topic.id, 0))
        world.disk.failing.clear()
        world.clock.advance(4.9)
        assert str(refusal(world.again)) == str(error)
    assert error.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert [formatEvent(event) for event in logged] == [error.message]
    world.clock.advance(0.2)
    assert world.again().log_end == 0
