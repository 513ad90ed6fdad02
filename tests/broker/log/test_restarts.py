"""
What survives the process: all appended records, and the files beside them.
"""

from collections.abc import Callable
from errno import EIO
from functools import partial
from json import loads
from pathlib import Path
from typing import Any

import pytest

from kgateway.broker.log.data_folder.checkpoints import SETTLED
from kgateway.broker.log.data_folder.folder_error import FolderError
from kgateway.broker.log.data_folder.producer_ids import PRODUCER_IDS
from kgateway.broker.log.data_folder.session import CLEAN, FolderSession
from kgateway.broker.log.data_folder.start_file import START
from kgateway.broker.log.data_folder.topic_journal import TOPICS
from kgateway.broker.log.files.disk import Disk
from kgateway.broker.log.partition.partition import LogPartition
from kgateway.cluster.config import TopicConfig
from kgateway.cluster.partition import EpochEnd, Origin
from kgateway.cluster.view import NewTopic
from kgateway.coordination.placement import partition_for
from kgateway.interfaces import IStateLog, KeyValue
from kgateway.wire.errors import ErrorCode
from tests.broker.behaviour import appended, batch, fetched, offsets, refusal, result, sequenced
from tests.broker.log.log_brokers import Turns, log_broker
from tests.broker.log.log_world import LogWorld

EITHER = pytest.mark.parametrize("again", [LogWorld.restart, LogWorld.killed], ids=["stopped", "killed"])


@pytest.fixture
def world(tmp_path: Path) -> LogWorld:
    return LogWorld(tmp_path)


def replayed(log: IStateLog) -> list[KeyValue]:
    return [pair for piece in result(log.replay()) for pair in piece]


@EITHER
def test_topics_and_records_survive_a_restart(again: Any, world: LogWorld) -> None:
    """
    Topics keep their ids, configs and partitions, records their offsets, whether the process was stopped or killed;
    the cluster id is kept too.
    """
    config = TopicConfig.of({"max.message.bytes": "77777"})
    before = result(world.broker.create_topic(NewTopic("orders", 1, config)))
    result(world.broker.add_partitions(before.id, 3))
    for index, count in enumerate((2, 1, 3)):
        for _ in range(count):
            appended(world.again("orders", index), batch(2))
    cluster_id = world.broker.view().cluster_id
    again(world)
    view = world.broker.view()
    assert (view.cluster_id, list(view.topics)) == (cluster_id, ["orders"])
    topic = view.topics_by_id[before.id]
    assert (topic.name, topic.internal, len(topic.partitions)) == ("orders", False, 3)
    assert topic.config == before.config
    assert [world.again("orders", index).high_watermark for index in range(3)] == [4, 2, 6]
    assert offsets(fetched(world.again("orders", 2), 0)) == [0, 2, 4]
    assert appended(world.again("orders"), batch()).base_offset == 4


def test_each_start_is_a_new_leader_epoch(world: LogWorld) -> None:
    """
    A topic's epoch begins with 0 where it was made and grows with each start; each ends where the next one wrote.
    """
    world.restart()
    partition, epochs = world.log_partition(), list[int]()
    for _ in range(4):
        epochs.append(partition.leader_epoch)
        if partition.leader_epoch != 2:
            appended(partition, batch())
        assert partition.topic.partitions[0].leader_epoch == partition.leader_epoch
        world.restart()
        partition = world.again()
    assert (epochs, partition.leader_epoch) == ([0, 1, 2, 3], 4)
    ends = [partition.epoch_end(epoch) for epoch in range(6)]
    assert ends == [EpochEnd(0, 1), EpochEnd(1, 2), EpochEnd(1, 2), EpochEnd(3, 3), EpochEnd(4, 3), None]
    result(world.broker.add_partitions(partition.topic.id, 2))
    world.restart()
    assert (world.again().leader_epoch, world.again("t", 1).leader_epoch) == (5, 5)


def test_producer_ids_are_not_reused_after_a_restart(world: LogWorld) -> None:
    given = set[int]()
    for _ in range(3):
        given |= {result(world.broker.new_producer_id()) for _ in range(3)}
        world.restart()
    assert len(given) == 9


@EITHER
def test_producers_are_remembered_after_a_restart(again: Any, world: LogWorld) -> None:
    """
    The last five batches of a producer can be repeated, and its sequence continues.
    """
    partition = world.log_partition()
    for sequence in range(7):
        appended(partition, sequenced(sequence))
    again(world)
    partition = world.again()
    assert [appended(partition, sequenced(sequence)).base_offset for sequence in range(2, 7)] == [2, 3, 4, 5, 6]
    for sent in (sequenced(1), sequenced(8)):
        error = refusal(partial(partition.append, sent, Origin.CLIENT))
        assert error.code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert appended(partition, sequenced(7)).base_offset == 7


@EITHER
def test_state_is_restored_from_its_snapshot(again: Any, world: LogWorld) -> None:
    """
    A later process replays the last snapshot and the records after it; the state's topic is still internal.
    """
    log = world.state_log()
    for value in (b"1", b"2"):
        log.append([(b"a", value)])
        result(log.snapshot(iter([(b"a", value)])))
    log.append([(b"b", b"3")])
    again(world)
    assert replayed(world.state_log()) == [(b"a", b"2"), (b"b", b"3")]
    assert world.broker.view().topics["__consumer_offsets"].internal
    assert len(list(world.path.glob("*/kgateway.state-*"))) == 1


def test_damaged_state_snapshot_is_ignored(world: LogWorld) -> None:
    """
    The log contains everything, as long as none of it is deleted.
    """
    log = world.state_log()
    log.append([(b"a", b"1")])
    result(log.snapshot(iter([(b"a", b"1")])))
    (path,) = world.path.glob("*/kgateway.state-*")
    for data in (path.read_bytes()[:-1], path.read_bytes()[:-1] + b"x"):
        path.write_bytes(data)
        assert replayed(world.state_log()) == [(b"a", b"1")]


def test_the_newest_whole_snapshot_counts(world: LogWorld) -> None:
    """
    One before it that could not be removed counts where the newest is damaged.
    """
    log = world.state_log()
    log.append([(b"a", b"1")])
    result(log.snapshot(iter([(b"a", b"1")])))
    (older,) = world.path.glob("*/kgateway.state-*")
    data = older.read_bytes()
    log.append([(b"a", b"2")])
    result(log.snapshot(iter([(b"a", b"2")])))
    (newer,) = world.path.glob("*/kgateway.state-*")
    older.write_bytes(data)
    assert replayed(world.state_log()) == [(b"a", b"2")]
    newer.write_bytes(newer.read_bytes()[:-1])
    assert replayed(world.state_log()) == [(b"a", b"1"), (b"a", b"2")]


def test_log_is_synced_before_its_snapshot(world: LogWorld) -> None:
    """
    Otherwise a power cut might leave state without its log.
    """
    log = world.state_log()
    log.append([(b"a", b"1"), (b"b", b"1")])
    topic = world.broker.view().topics["__consumer_offsets"]
    partition = world.broker.partition(topic.id, partition_for("group", len(topic.partitions)))
    assert isinstance(partition, LogPartition)
    assert partition.synced_offset == 0
    result(log.snapshot(iter([(b"a", b"1"), (b"b", b"1")])))
    assert partition.synced_offset == 2


def test_the_boot_is_noted(world: LogWorld) -> None:
    """
    Once what another boot has left is checked, the next start may trust what it finds.
    """
    appended(world.log_partition(), batch())
    world.kill()
    world.boot = "another boot"
    world.start()
    assert loads((world.path / START).read_text())["boot_id"] == "another boot"


def test_what_was_only_settled_is_forgotten_before_the_boot_is_noted(world: LogWorld) -> None:
    """
    Else the next process would believe what the machine did not outlast.
    """
    appended(world.log_partition(), batch())
    world.tick()
    assert world.told()[0] == {("t", 0): 1}
    world.kill()
    world.boot = "another boot"
    world.disk.done.clear()
    world.start(in_turns=Turns())
    done = world.disk.done
    assert done.index(("sync", SETTLED)) < len(done) - done[::-1].index(("sync", START)) - 1
    assert world.told()[0] == {}


@pytest.mark.parametrize("harm", [lambda data: data[:-1], lambda data: data[:-9], lambda data: data[:-2] + b"x\n"])
def test_a_damaged_journal_is_refused_again_and_again(harm: Callable[[bytes], bytes], world: LogWorld) -> None:
    """
    The gateway may be started by what starts it anew as often as it ends: nothing is lost by that.
    """
    appended(world.log_partition(), batch())
    result(world.broker.stop())
    path = world.path / TOPICS
    good = path.read_bytes()
    path.write_bytes(harm(good))
    for _ in range(3):
        with pytest.raises(FolderError, match=r"line 1 of .* is damaged, and it was intact once"):
            world.start()
        assert path.read_bytes() == harm(good)
    path.write_bytes(good)
    world.start()
    assert world.again().log_end == 1


@pytest.mark.parametrize("boot", ["a boot", "another boot"])
def test_interrupted_change_is_not_applied(boot: str, world: LogWorld) -> None:
    """
    It was not acknowledged.
    """
    appended(world.log_partition(), batch())
    world.topic("cut")
    world.kill()
    path = world.path / TOPICS
    path.write_bytes(path.read_bytes()[:-9])
    world.boot = boot
    world.start()
    assert list(world.broker.view().topics) == ["t"]


def test_failed_start_unlocks_the_folder(world: LogWorld) -> None:
    """
    The operator can correct the error and start again.
    """
    done = list[str]()

    class Lock:
        def __init__(self, folder: Path) -> None:
            done.append("held")

        def release(self) -> None:
            done.append("released")

    def locking(path: Path, disk: Disk, node_id: int) -> FolderSession:
        return FolderSession.open(path, disk, node_id, lock=Lock)

    world.disk.failing[f"read {PRODUCER_IDS}"] = EIO
    with pytest.raises(FolderError, match="Input/output error"):
        world.restart(open_session=locking)
    assert done == ["held", "released"]


def test_stop_may_be_repeated_or_come_before_a_start(tmp_path: Path) -> None:
    """
    A caller whose start failed stops the broker in any case.
    """
    broker = log_broker(tmp_path / "data")
    result(broker.stop())
    result(broker.start())
    for _ in range(2):
        result(broker.stop())
        assert (tmp_path / "data" / CLEAN).exists()
