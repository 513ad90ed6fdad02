"""
What a gateway writes when it stops.
"""

from errno import EIO
from pathlib import Path

import pytest
from twisted.logger import LogLevel, capturedLogs

from kgateway.broker.log.data_folder.checkpoints import SETTLED, SYNCED
from kgateway.broker.log.data_folder.session import CLEAN
from kgateway.broker.log.segments.file_names import file_name
from kgateway.cluster.partition import Origin
from kgateway.cluster.view import NewTopic
from tests.broker.behaviour import batch, refusal, result
from tests.broker.log.log_brokers import Turns, log_broker
from tests.broker.log.log_world import LogWorld

T0, T1, U0 = ("t", 0), ("t", 1), ("u", 0)


@pytest.fixture
def world(tmp_path: Path) -> LogWorld:
    return LogWorld(tmp_path)


def test_stop_syncs_what_was_appended(world: LogWorld) -> None:
    world.log_partition().append(batch(), Origin.CLIENT)
    world.restart()
    world.again().append(batch(), Origin.CLIENT)
    result(world.broker.stop())
    assert world.told() == ({T0: 2}, {T0: 2})


def test_stop_settles_and_syncs_everything(world: LogWorld) -> None:
    """
    Everything is settled and synced up to the end, files beside the segments too, and the folder is marked clean.
    """
    partition = world.log_partition()
    for _ in range(2):
        partition.append(batch(), Origin.CLIENT)
    world.tick()
    partition.append(batch(), Origin.CLIENT)
    world.disk.done.clear()
    result(world.broker.stop())
    assert world.told() == ({T0: 3}, {T0: 3})
    synced = [name for done, name in world.disk.done if done in ("sync", "sync_folder")]
    log = [file_name(0, ".log"), file_name(0, ".index"), file_name(0, ".timeindex"), file_name(3, ".snapshot")]
    beside = ["leader-epoch-checkpoint", "t-0", world.path.name]
    assert synced == [*log, *beside, SYNCED, SETTLED, CLEAN]
    assert not world.disk.opened
    assert not world.clock.getDelayedCalls()


def test_what_was_not_opened_is_not_synced_again(world: LogWorld) -> None:
    """
    After a clean stop a partition that nobody touches costs nothing, at the next stop too, and is as good as before.
    """
    world.log_partition("t").append(batch(), Origin.CLIENT)
    world.restart()
    world.log_partition("u").append(batch(), Origin.CLIENT)
    world.restart()
    world.disk.done.clear()
    world.again("t")
    world.restart()
    assert world.told() == ({T0: 1, U0: 1}, {T0: 1, U0: 1})
    assert world.disk.count("sync", ".log") == 0


def test_what_was_not_opened_since_a_crash(world: LogWorld, tmp_path: Path) -> None:
    """
    What nobody has synced is still no more than settled when the gateway stops before it could open it: the next start
    believes that as long as the machine is on.
    """
    world.log_partition().append(batch(), Origin.CLIENT)
    world.tick()
    world.kill()
    turns = Turns()
    world.start(in_turns=turns)
    turns.until(world.broker.stop())
    assert world.told() == ({T0: 1}, {T0: 0})
    assert not (tmp_path / CLEAN).exists()


def test_recovered_partitions_are_synced_at_a_stop(world: LogWorld) -> None:
    """
    Files of the crashed process are synced even if nothing was appended.
    """
    world.log_partition().append(batch(), Origin.CLIENT)
    world.tick()
    world.kill()
    world.start()
    world.disk.done.clear()
    result(world.broker.stop())
    assert world.told() == ({T0: 1}, {T0: 1})
    assert world.disk.count("sync", file_name(0, ".log")) == 1


def test_full_segments_that_a_dead_process_has_left_are_synced(world: LogWorld) -> None:
    """
    All that it had begun to sync, or not, is made sure with the first sync.
    """
    partition = world.log_partition(segment_bytes=len(batch().data))
    world.threads.slow = True
    for _ in range(3):
        partition.append(batch(), Origin.CLIENT)
    world.tick()
    world.kill()
    world.threads.slow = False
    world.start()
    world.disk.done.clear()
    result(world.broker.stop())
    assert {name for done, name in world.disk.done if done == "sync" and name.endswith(".log")} == {
        file_name(base, ".log") for base in range(3)
    }
    assert world.told() == ({T0: 3}, {T0: 3})


@pytest.mark.parametrize("operation", ["write .snapshot", f"write {SYNCED}", "sync .log"])
def test_stop_with_failed_writes_is_not_clean(operation: str, world: LogWorld) -> None:
    """
    The gateway ends all the same, and the next start recovers.
    """
    world.log_partition().append(batch(), Origin.CLIENT)
    world.disk.failing[operation] = EIO
    result(world.broker.stop())
    assert not (world.path / CLEAN).exists()
    assert not world.disk.opened
    world.disk.failing.clear()
    world.start()
    assert world.again().log_end == 1


def test_stop_during_a_tick(tmp_path: Path) -> None:
    """
    The files written at the stop are the last.
    """
    turns = Turns()
    world = LogWorld(tmp_path, in_turns=turns)
    turns.waiting.clear()
    world.log_partition().append(batch(), Origin.CLIENT)
    world.tick()
    stopped = world.broker.stop()
    turns.waiting.reverse()
    turns.until(stopped)
    world.disk.done.clear()
    while turns.waiting:
        turns.step()
    assert world.disk.done == []
    assert not world.clock.getDelayedCalls()


def test_stop_has_a_time_limit(world: LogWorld) -> None:
    """
    Files not synced in time are left to the next start, including those a thread has queued.
    """
    for _ in range(3):
        partition = world.log_partition(f"t{len(world.broker.view().topics)}")
        partition.append(batch(), Origin.CLIENT)
    world.threads.slow = True
    stopped = world.broker.stop()
    with capturedLogs() as logged:
        world.clock.advance(9.9)
        assert not stopped.called
        world.clock.advance(0.2)
    result(stopped)
    (told,) = [event for event in logged if event["log_level"] is LogLevel.warn]
    assert (told["partitions"], told["seconds"]) == ("3 partitions", 10)
    while world.threads:
        world.threads.work()
    assert world.disk.count("sync", file_name(0, ".log")) == 0
    assert not (world.path / CLEAN).exists()
    world.threads.slow = False
    world.start()
    assert [world.again(name).log_end for name in world.broker.view().topics] == [1, 1, 1]


def test_a_stop_ends_amid_a_sync(world: LogWorld) -> None:
    """
    A thread that has taken many syncs ends after the one that it is in, so that the process can.
    """
    topic = world.topic("t", 10)
    for index in range(10):
        world.broker.partition(topic.id, index).append(batch(), Origin.CLIENT)
    note = world.disk.note

    def slow(operation: str, path: Path) -> None:
        note(operation, path)
        if (operation, path.suffix) == ("sync", ".log"):
            world.clock.advance(6)

    world.threads.slow = True
    stopped = world.broker.stop()
    world.disk.done.clear()
    world.disk.note = slow  # type: ignore[method-assign]  # each sync takes longer than half the time there is
    while world.threads:
        world.threads.work()
    result(stopped)
    assert world.disk.count("sync", ".log") == 2
    assert not (world.path / CLEAN).exists()


def test_stop_after_a_failed_journal_sync_is_not_clean(world: LogWorld) -> None:
    """
    After a failed sync nobody knows what the journal has of a topic.
    """
    world.topic("t")
    world.disk.failing["sync .topics"] = EIO
    refusal(lambda: world.broker.create_topic(NewTopic("u", 1)))
    world.disk.failing.clear()
    result(world.broker.stop())
    assert not (world.path / CLEAN).exists()
    world.start()
    assert list(world.broker.view().topics) == ["t"]


def test_a_folder_that_partitions_share_is_synced_once(world: LogWorld) -> None:
    """
    At a stop, by each of the threads.
    """
    topic = world.topic("t", 10)
    world.threads.slow = True
    for index in range(10):
        world.broker.partition(topic.id, index).append(batch(), Origin.CLIENT)
    world.disk.done.clear()
    stopped = world.broker.stop()
    while world.threads:
        world.threads.work()
    result(stopped)
    assert world.disk.count("sync", file_name(0, ".log")) == 10
    assert world.disk.count("sync_folder", world.path.name) <= 3


@pytest.mark.parametrize("has_topic", [False, True])
def test_an_undone_start_removes_only_a_new_and_empty_folder(tmp_path: Path, has_topic: bool) -> None:
    """
    What has been stored is kept, and closed as at any stop.
    """
    broker = log_broker(tmp_path / "data")
    result(broker.start())
    if has_topic:
        result(broker.create_topic(NewTopic("orders", 1)))
    result(broker.undo_start())
    assert (tmp_path / "data").exists() is has_topic
    again = log_broker(tmp_path / "data")
    result(again.start())
    assert list(again.view().topics) == ["orders"] * has_topic
    result(again.stop())
