"""
The embedded log: the behaviour common to all brokers, and its own, because its data survives the process.
"""

from collections.abc import Callable
from gc import collect
from itertools import count
from pathlib import Path
from weakref import ref

import pytest
from twisted.logger import LogLevel, capturedLogs
from zope.interface.verify import verifyObject

from kgateway.broker.log.partition import syncer
from kgateway.cluster.config import TopicConfig
from kgateway.cluster.partition import Origin, TimestampAndOffset
from kgateway.cluster.view import NewTopic, Topic
from kgateway.interfaces import IBroker, IPartition, IStateLog
from kgateway.wire.errors import ErrorCode
from tests.broker.admin_behaviour import Administering
from tests.broker.behaviour import (
    START_MS,
    Behaviour,
    Make,
    appended,
    at_times,
    batch,
    fetched,
    offsets,
    refusal,
    result,
    sequenced,
)
from tests.broker.config_behaviour import Altering
from tests.broker.deletion_behaviour import SegmentDeletion
from tests.broker.log.log_brokers import log_broker
from tests.broker.log.log_world import LogWorld


@pytest.fixture(scope="module")
def make(tmp_path_factory: pytest.TempPathFactory) -> Make:
    """
    Brokers with a folder each.
    """
    numbers, folder = count(), tmp_path_factory.mktemp("logs")

    def made(now_ms: Callable[[], int], expiry_ms: int) -> IBroker:
        return log_broker(folder / str(next(numbers)), now_ms=now_ms, producer_expiry_ms=expiry_ms)

    return made


class TestLog(Behaviour, SegmentDeletion, Altering, Administering):
    pass


SIZE = len(batch().data)


@pytest.fixture
def world(tmp_path: Path) -> LogWorld:
    return LogWorld(tmp_path)


def folders(world: LogWorld) -> list[str]:
    return sorted(path.name for path in world.path.iterdir() if path.is_dir())


def configured(world: LogWorld, name: str = "t", **overrides: str) -> Topic:
    """
    A topic whose config survives a restart.
    """
    config = TopicConfig.of({key.replace("_", "."): value for key, value in overrides.items()})
    return result(world.broker.create_topic(NewTopic(name, 1, config)))


def test_interfaces_are_provided(world: LogWorld) -> None:
    """
    Everything that the interfaces name exists and is callable as declared.
    """
    assert verifyObject(IBroker, world.broker)
    assert verifyObject(IPartition, world.log_partition())
    assert verifyObject(IStateLog, world.state_log())


def test_broker_says_where_its_data_is(world: LogWorld) -> None:
    """
    The log names the folder and the number of its topics.
    """
    assert world.broker.folder == str(world.path)
    assert world.broker.description == f"data in {world.path} (0 topics)"
    world.topic()
    assert world.broker.description == f"data in {world.path} (1 topic)"


def test_segments_end_after_a_time(world: LogWorld) -> None:
    """
    With segment.ms a batch that is so much later than the first of its segment begins another one; after a restart
    too.
    """
    configured(world, segment_ms="1000")
    for time in (0, 1000, 500, 1001):
        appended(world.again(), at_times(START_MS + time))
        world.restart()
    assert sorted(int(path.stem) for path in (world.path / "t-0").glob("*.log")) == [0, 3]
    appended(world.again(), at_times(START_MS + 2001))
    appended(world.again(), at_times(START_MS + 2002))
    assert sorted(int(path.stem) for path in (world.path / "t-0").glob("*.log")) == [0, 3, 5]


def test_batches_without_a_time_end_no_segment(world: LogWorld) -> None:
    """
    If the first batch has no timestamp, no later one counts.
    """
    partition = world.log_partition(segment_ms=1000)
    appended(partition, at_times(-1))
    appended(partition, at_times(START_MS))
    assert len(list((world.path / "t-0").glob("*.log"))) == 1


@pytest.mark.parametrize("sizes", [(SIZE, 1), (2 * SIZE - 1, 1), (2 * SIZE, 2), (3 * SIZE - 1, 2)])
def test_segments_end_at_a_size(sizes: tuple[int, int], world: LogWorld) -> None:
    """
    A segment has as many batches as fit, and at least one; reads continue in the next.
    """
    segment_bytes, count = sizes
    partition = world.log_partition(segment_bytes=segment_bytes)
    for _ in range(5):
        appended(partition, batch())
    bases = sorted(int(path.stem) for path in (world.path / "t-0").glob("*.log"))
    assert bases == list(range(0, 5, count))
    read = list[int]()
    while len(read) < 5:
        read += offsets(fetched(partition, len(read)))
    assert read == [0, 1, 2, 3, 4]


def test_a_batch_larger_than_a_segment(world: LogWorld) -> None:
    """
    It gets a segment of its own.
    """
    partition = world.log_partition(segment_bytes=10)
    for _ in range(2):
        appended(partition, batch())
    assert partition.log_end == 2


def test_deletion_frees_the_folder(world: LogWorld) -> None:
    """
    Nothing of a topic is left on disk or open; a topic of its name has nothing of it, now or after a restart.
    """
    topic = world.topic("t", 2)
    for index in range(2):
        appended(world.again("t", index), batch())
    other = world.log_partition("other")
    world.disk.done.clear()
    result(world.broker.delete_topic(topic.id))
    assert ("sync_folder", world.path.name) in world.disk.done
    assert folders(world) == ["other-0"]
    assert not [file for file in world.disk.opened if file.path.parent.name != "other-0" and file.path.suffix == ".log"]
    again = world.log_partition("t")
    assert (again.log_end, again.topic.id != topic.id) == (0, True)
    appended(again, batch())
    world.restart()
    assert (world.again("t").log_end, world.again("other").topic.id) == (1, other.topic.id)


def test_deleted_state_takes_no_memory(world: LogWorld) -> None:
    """
    The state log of a deleted topic is freed, too.
    """
    log = ref(world.state_log())
    result(world.broker.delete_topic(world.broker.view().topics["__consumer_offsets"].id))
    collect()
    assert log() is None


def test_a_deletion_that_a_crash_has_cut(world: LogWorld) -> None:
    """
    The folder of a deleted topic is renamed, which is logged; a new topic does not get it.
    """
    appended(world.log_partition(), batch())
    world.threads.slow = True
    deleting = world.broker.delete_topic(world.again().topic.id)
    world.threads.work()  # only the journal knows of the deletion
    assert not deleting.called
    world.kill()
    world.threads.slow = False
    with capturedLogs() as logged:
        world.start()
    (told,) = [event for event in logged if event["log_level"] is LogLevel.warn]
    assert told["folder"] == world.path / "t-0.0-stray"
    assert folders(world) == ["t-0.0-stray"]
    assert world.log_partition().log_end == 0


def test_what_a_deletion_has_left_is_removed_at_the_start(world: LogWorld) -> None:
    """
    The next start deletes files of a deleted topic that could not be removed.
    """
    appended(world.log_partition(), batch())
    world.disk.failing["remove .log"] = 5
    result(world.broker.delete_topic(world.again().topic.id))
    (left,) = folders(world)
    assert left.endswith("-delete")
    world.disk.failing.clear()
    world.restart()
    assert folders(world) == []


def test_topics_of_one_name_come_one_after_the_other(world: LogWorld) -> None:
    """
    A name is taken while its topic is created or deleted; other topics are created meanwhile.
    """
    world.threads.slow = True
    first = world.broker.create_topic(NewTopic("t", 1))
    assert refusal(lambda: world.broker.create_topic(NewTopic("t", 1))).code is ErrorCode.TOPIC_ALREADY_EXISTS
    second = world.broker.create_topic(NewTopic("u", 1))
    assert not world.broker.view().topics
    for _ in range(2):
        world.threads.work()
    assert list(world.broker.view().topics) == ["t", "u"]
    deleting = world.broker.delete_topic(result(first).id)
    world.threads.work()
    assert list(world.broker.view().topics) == ["u"]
    assert refusal(lambda: world.broker.create_topic(NewTopic("t", 1))).code is ErrorCode.TOPIC_ALREADY_EXISTS
    while world.threads:
        world.threads.work()
    assert (result(deleting), result(second).name) == (None, "u")


def test_the_disk_writes_early(world: LogWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    After so many bytes the disk begins to write them, one range at a time, and nobody waits for it.
    """
    monkeypatch.setattr(syncer, "EARLY_BYTES", 2 * SIZE)
    partition = world.log_partition()
    world.threads.slow = True
    for _ in range(5):
        assert appended(partition, batch()).committed is None
    assert len(world.threads) == 1
    world.threads.work()
    appended(partition, batch())
    world.threads.work()
    early = [done for done, _ in world.disk.done if done.startswith("write early")]
    assert early == [f"write early 0 {2 * SIZE}", f"write early {2 * SIZE} {4 * SIZE}"]
    world.threads.slow = False
    result(world.broker.stop())
    assert not world.disk.opened


def test_the_clock_may_be_set_back(world: LogWorld) -> None:
    """
    Order, offsets and times are unchanged, and no producer expires.
    """
    partition = world.log_partition()
    appended(partition, sequenced(0))
    world.now_ms -= 1_800_000
    assert appended(partition, sequenced(1)).base_offset == 1
    assert appended(partition, sequenced(0)).base_offset == 0
    world.restart()
    assert appended(world.again(), sequenced(1)).base_offset == 1
    assert result(world.again().find_max_time()) == TimestampAndOffset(0, START_MS, 0)


def test_a_stop_ends_all(world: LogWorld) -> None:
    """
    Partitions and state logs in use answer that the broker has stopped.
    """
    partition, log, heard = world.log_partition(), world.state_log(), list[str]()
    log.on_lost(lambda: heard.append("lost"))
    result(world.broker.stop())
    error = refusal(lambda: partition.append(batch(), Origin.CLIENT))
    assert str(error) == "NOT_LEADER_OR_FOLLOWER: the gateway is stopping"
    assert refusal(lambda: log.append([(b"a", b"1")])).code is ErrorCode.NOT_COORDINATOR
    assert heard == ["lost"]
