"""
Broker configs in a file that survives the process, and the sizes of logs.
"""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from kgateway.broker.log.data_folder.config_file import CONFIGS
from kgateway.cluster.config_resource import broker
from kgateway.topic_partition import PartitionId
from tests.broker.behaviour import appended, batch, result
from tests.broker.config_behaviour import T, setting, without
from tests.broker.log.log_world import LogWorld


@pytest.fixture
def world(tmp_path: Path) -> LogWorld:
    return LogWorld(tmp_path)


@pytest.mark.parametrize("again", [LogWorld.restart, LogWorld.killed], ids=["stopped", "killed"])
def test_topics_follow_after_a_restart(again: Callable[[LogWorld], None], world: LogWorld) -> None:
    """
    Broker configs apply to existing topics and to new ones, however the process ended.
    """
    world.topic()
    for resource, value in ((broker(""), 200), (broker(1), 300)):
        result(world.broker.change_config(resource, setting(log_retention_ms=value)))
    again(world)
    world.topic("u")
    assert [topic.config.retention_ms for topic in world.broker.view().topics.values()] == [300, 300]
    result(world.broker.change_config(broker(1), without("log.retention.ms")))
    again(world)
    assert [topic.config.retention_ms for topic in world.broker.view().topics.values()] == [200, 200]


def test_what_changes_while_a_topic_is_changed(world: LogWorld) -> None:
    """
    A topic whose change is being written has the broker configs that were set meanwhile.
    """
    partition = world.partition()
    world.threads.slow = True
    followed = world.broker.change_config(broker(""), setting(log_retention_ms=200))
    changed = world.broker.change_config(T, setting(segment_ms=88))
    while not (followed.called and changed.called):
        world.threads.work()
    config = world.broker.view().topics["t"].config
    assert (config.segment_ms, config.retention_ms) == (88, 200)
    assert partition.topic.config == config


def test_sizes(world: LogWorld) -> None:
    """
    The size of a partition is that of its segments, without other files in its folder; without a folder it is 0.
    """
    topic = world.topic(partition_count=2)
    partition = world.broker.partition(topic.id, 0)
    for _ in range(3):
        appended(partition, batch(5))
    measured = result(world.broker.measure([PartitionId(topic.id, 0), PartitionId(topic.id, 1)]))
    assert measured.sizes == {PartitionId(topic.id, 0): 3 * batch(5).header.size, PartitionId(topic.id, 1): 0}


def test_room(world: LogWorld, tmp_path: Path) -> None:
    """
    The free space is that of the file system.
    """
    measured, room = result(world.broker.measure([])), shutil.disk_usage(tmp_path)
    assert measured.total_bytes == room.total
    assert 0 < measured.usable_bytes <= room.total


def test_log_dir(world: LogWorld, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """
    The path is absolute, wherever the gateway was started.
    """
    assert Path(world.broker.log_dir).is_absolute()
    assert (Path(world.broker.log_dir) / "meta.properties").exists()
    result(world.broker.change_config(broker(""), setting(log_roll_ms=7)))
    assert (Path(world.broker.log_dir) / CONFIGS).exists()
