"""
When checkpoints are written, and what they contain.
"""

from errno import EIO, ENOSPC
from pathlib import Path

import pytest
from twisted.logger import LogLevel, capturedLogs

from kgateway.broker.log.checkpointer import INTERVAL_S
from kgateway.broker.log.data_folder.checkpoints import SETTLED
from kgateway.broker.log.data_folder.session import CLEAN
from kgateway.broker.log.segments.file_names import file_name
from kgateway.cluster.partition import Origin
from tests.broker.behaviour import batch, result, sequenced
from tests.broker.log.log_brokers import Turns
from tests.broker.log.log_world import LogWorld

T0, T1, U0 = ("t", 0), ("t", 1), ("u", 0)
SNAPSHOTS = "*.snapshot"


@pytest.fixture
def world(tmp_path: Path) -> LogWorld:
    return LogWorld(tmp_path)


def snapshots(world: LogWorld) -> list[int]:
    return sorted(int(path.stem) for path in (world.path / "t-0").glob(SNAPSHOTS))


def test_changed_partitions_are_settled_at_each_tick(world: LogWorld) -> None:
    """
    Appended batches are settled: indexes, producers, epochs, and the checkpoint; they are not synced. A new partition
    is in the checkpoint at once.
    """
    partition = world.log_partition()
    assert world.told() == ({}, {})
    world.clock.advance(0)
    world.disk.done.clear()
    for sequence in range(3):
        partition.append(sequenced(sequence), Origin.CLIENT)
    world.clock.advance(INTERVAL_S - 0.1)
    assert world.told() == ({T0: 0}, {})
    world.clock.advance(0.1)
    assert world.told() == ({T0: 3}, {T0: 0})
    assert partition.settled
    assert snapshots(world) == [3]
    assert (world.path / "t-0" / "leader-epoch-checkpoint").read_text() == "0\n1\n0 0\n"
    assert (world.path / "t-0" / file_name(0, ".index")).exists()
    assert world.disk.count("sync") == 0


def test_what_does_not_change_is_left_alone(world: LogWorld) -> None:
    """
    Without an append a tick writes nothing, and with one only that partition.
    """
    first, second = world.log_partition("t"), world.log_partition("u")
    first.append(batch(), Origin.CLIENT)
    world.tick()
    world.disk.done.clear()
    world.tick()
    assert world.disk.done == []
    second.append(batch(), Origin.CLIENT)
    world.tick()
    assert world.told() == ({T0: 1, U0: 1}, {T0: 0, U0: 0})
    assert world.disk.count("write", ".snapshot") == 1
    assert first.settled


def test_each_snapshot_takes_the_place_of_the_last(world: LogWorld) -> None:
    """
    There is one, besides those at the borders of segments.
    """
    partition = world.log_partition(segment_bytes=2 * len(batch().data))
    found = list[list[int]]()
    for _ in range(5):
        partition.append(batch(), Origin.CLIENT)
        world.tick()
        found.append(snapshots(world))
    assert found == [[1], [2], [2, 3], [2, 4], [2, 4, 5]]


def test_snapshots_at_borders_stay_after_a_crash(world: LogWorld) -> None:
    """
    This includes the last one of the previous process, if it is at a border by now.
    """
    partition = world.log_partition(segment_bytes=2 * len(batch().data))
    for _ in range(2):
        partition.append(batch(), Origin.CLIENT)
    world.tick()
    partition.append(batch(), Origin.CLIENT)
    world.killed()
    world.tick()
    assert snapshots(world) == [2, 3]


def test_a_snapshot_that_is_there_already(world: LogWorld) -> None:
    """
    Settling the same offset again, as after damage, succeeds.
    """
    partition = world.log_partition()
    for _ in range(3):
        partition.append(batch(), Origin.CLIENT)
    world.tick()
    world.kill()
    path = world.path / "t-0" / file_name(0, ".log")
    data = bytearray(path.read_bytes())
    data[2 * len(data) // 3 - 1] ^= 0xFF
    path.write_bytes(data)
    with capturedLogs() as logged:
        world.start()
    told_of = [str(event["fault"]) for event in logged if event["log_level"] is LogLevel.warn]
    assert [fault.endswith("skipped: readers get CORRUPT_MESSAGE") for fault in told_of] == [True]
    world.tick()
    assert (world.again().log_end, world.again().settled, snapshots(world)) == (3, True, [3])


def test_deleted_partitions_are_forgotten(world: LogWorld) -> None:
    """
    Neither file contains a deleted topic, whether it has changed since the last tick or not.
    """
    topic = world.topic("t", 2)
    for index in range(2):
        world.again("t", index).append(batch(), Origin.CLIENT)
    world.tick()
    assert set(world.told()[0]) == {T0, T1}
    world.again().append(batch(), Origin.CLIENT)
    result(world.broker.delete_topic(topic.id))
    world.log_partition("u").append(batch(), Origin.CLIENT)
    world.tick()
    assert world.told() == ({U0: 1}, {U0: 0})


@pytest.mark.parametrize("operation", ["write .snapshot", "append .index", "write leader-epoch-checkpoint"])
def test_what_cannot_be_settled_is_tried_again(operation: str, world: LogWorld) -> None:
    """
    A full disk is logged, earlier checkpoints still count, and the next tick makes up for it.
    """
    first, second = world.log_partition("t", index_interval_bytes=0), world.log_partition("u", index_interval_bytes=0)
    for partition in (first, second):
        partition.append(batch(), Origin.CLIENT)
    world.tick()
    for _ in range(2):
        first.append(batch(), Origin.CLIENT)
    world.disk.failing[operation] = ENOSPC
    with capturedLogs() as logged:
        world.tick()
        world.tick()
    assert [event["log_level"] for event in logged] == [LogLevel.critical]
    assert (world.told()[0], first.settled) == ({T0: 1, U0: 1}, False)
    world.disk.failing.clear()
    with capturedLogs() as logged:
        world.tick()
    assert [event["log_level"] for event in logged] == [LogLevel.info]
    assert world.told()[0] == {T0: 3, U0: 1}


def test_a_checkpoint_that_cannot_be_written(world: LogWorld) -> None:
    """
    The failure is logged, and the next checkpoint has everything.
    """
    first, second = world.log_partition("t"), world.log_partition("u")
    first.append(batch(), Origin.CLIENT)
    world.disk.failing[f"write {SETTLED}"] = ENOSPC
    with capturedLogs() as logged:
        world.tick()
    assert [event["log_level"] for event in logged] == [LogLevel.critical]
    world.disk.failing.clear()
    second.append(batch(), Origin.CLIENT)
    with capturedLogs() as logged:
        world.tick()
    assert [event["log_level"] for event in logged] == [LogLevel.info]
    assert world.told()[0] == {T0: 1, U0: 1}


def test_offline_partitions_are_not_settled(world: LogWorld) -> None:
    """
    Records that a failed sync may have lost do not count as settled, nor the folder as clean.
    """
    world.log_partition().append(batch(), Origin.CLIENT)
    world.tick()
    assert world.told()[0] == {T0: 1}
    partition = world.log_partition("u", acks_fsync=True)
    world.tick()
    world.disk.failing["sync .log"] = EIO
    answer = partition.append(batch(), Origin.CLIENT)
    assert answer.committed
    answer.committed.addErrback(lambda _: None)
    world.tick()
    assert world.told() == ({T0: 1}, {T0: 0, U0: 0})
    world.disk.failing.clear()
    result(world.broker.stop())
    assert not (world.path / CLEAN).exists()


def test_a_partition_that_goes_offline_when_it_is_settled(world: LogWorld) -> None:
    """
    It is not settled again, although nothing was appended since.
    """
    world.log_partition(flush_ms=INTERVAL_S * 1000 + 500).append(batch(), Origin.CLIENT)
    world.tick()
    assert world.told()[0] == {T0: 1}
    world.disk.failing["sync .log"] = EIO
    world.tick()
    assert world.told()[0] == {}


def test_many_partitions_are_settled_by_turns(tmp_path: Path) -> None:
    """
    Each takes one step, and the checkpoint is written when all are done; the next tick waits for it.
    """
    turns = Turns()
    world = LogWorld(tmp_path, in_turns=turns)
    world.topic("t", 3)
    turns.waiting.clear()  # the start has some
    for index in range(3):
        world.again("t", index).append(batch(), Origin.CLIENT)
    world.tick()
    for _ in range(3):
        turns.step()
        assert set(world.told()[0].values()) == {0}
    world.tick()
    assert len(turns.waiting) == 1
    turns.step()
    assert len(world.told()[0]) == 3
    world.again().append(batch(), Origin.CLIENT)
    world.tick()
    assert len(turns.waiting) == 1


def test_partitions_that_are_written_to_all_the_time_are_settled(tmp_path: Path) -> None:
    """
    Appends between settling and checkpoint do no harm: the checkpoint has the settled offset, and its snapshot
    exists.
    """
    turns = Turns()
    world = LogWorld(tmp_path, in_turns=turns)
    partition = world.log_partition()
    turns.waiting.clear()  # the start has some
    for count in (1, 3, 5):
        partition.append(batch(), Origin.CLIENT)
        world.tick()
        turns.step()
        partition.append(batch(), Origin.CLIENT)
        assert file_name(count, ".snapshot") in {path.name for path in (tmp_path / "t-0").iterdir()}
        turns.step()
        assert world.told()[0] == {T0: count}
        assert snapshots(world) == [count]
