"""
Syncs that no append waits for.
"""

from pathlib import Path

import pytest

from kgateway.broker.log.segments.file_names import file_name
from kgateway.cluster.config_resource import Change
from kgateway.cluster.partition import Origin
from tests.broker.behaviour import appended, batch, result
from tests.broker.config_behaviour import T, setting, without
from tests.broker.log.log_world import LogWorld

SIZE = len(batch().data)
LOG = file_name(0, ".log")


@pytest.fixture
def world(tmp_path: Path) -> LogWorld:
    return LogWorld(tmp_path)


def synced(world: LogWorld) -> list[str]:
    """
    The synced files, in order.
    """
    return [name for done, name in world.disk.done if done in ("sync", "sync_folder")]


def test_syncs_after_so_many_records(world: LogWorld) -> None:
    """
    With flush.messages a sync begins after so many records, and no append waits for it.
    """
    partition = world.log_partition(flush_messages=5)
    synced_at = list[int]()
    for count in (2, 2, 1, 4, 9, 1):
        assert partition.append(batch(count), Origin.CLIENT).committed is None
        synced_at.append(partition.synced_offset)
    assert synced_at == [0, 0, 5, 5, 18, 18]


def test_syncs_after_a_time(world: LogWorld) -> None:
    """
    With flush.ms one sync begins so long after the first unsynced record, for all that arrive meanwhile.
    """
    partition = world.log_partition(flush_ms=1500)
    world.disk.done.clear()
    partition.append(batch(), Origin.CLIENT)
    for wait in (0.7, 0.7):
        world.clock.advance(wait)
        partition.append(batch(), Origin.CLIENT)
    assert partition.synced_offset == 0
    world.clock.advance(0.1)
    assert partition.synced_offset == 3
    assert synced(world).count(LOG) == 1
    world.clock.advance(3)
    assert synced(world).count(LOG) == 1
    partition.append(batch(), Origin.CLIENT)
    world.clock.advance(1.5)
    assert partition.synced_offset == 4


def test_both_ways_of_flushing(world: LogWorld) -> None:
    """
    A sync by the number of records restarts the time, too.
    """
    partition = world.log_partition(flush_ms=1000, flush_messages=2)
    world.disk.done.clear()
    for _ in range(2):
        partition.append(batch(), Origin.CLIENT)
    assert partition.synced_offset == 2
    world.clock.advance(2)
    assert synced(world).count(LOG) == 1


def test_a_deleted_topic_is_flushed_no_more(world: LogWorld) -> None:
    """
    A sync that was due later does not look for deleted files, and a sync that fails for that reason is no damage.
    """
    partition = world.log_partition(flush_ms=1000)
    partition.append(batch(), Origin.CLIENT)
    result(world.broker.delete_topic(partition.topic.id))
    world.disk.done.clear()
    world.clock.advance(2)
    assert world.disk.count("open", LOG) == world.disk.count("sync", LOG) == 0
    assert not partition.offline


def test_another_config_holds_for_what_is_there(world: LogWorld) -> None:
    """
    Unsynced records follow the new config: by number, by time, or not at all.
    """
    partition = world.log_partition(flush_ms=60_000)

    def syncs_after(change: Change, seconds: float) -> int:
        appended(partition, batch())
        before = world.disk.count("sync", LOG)
        result(world.broker.change_config(T, change))
        world.clock.advance(seconds)
        return world.disk.count("sync", LOG) - before

    assert syncs_after(setting(flush_ms=500), 0.4) == 0
    assert syncs_after(setting(flush_ms=400), 0.4) == 1
    assert syncs_after(without("flush.ms"), 61) == 0
    assert syncs_after(setting(flush_messages=2), 0) == 1
    assert syncs_after(setting(flush_messages=3), 0) == 0
    assert syncs_after(setting(flush_messages=2), 0) == 1
    before = world.disk.count("sync", LOG)
    result(world.broker.change_config(T, setting(flush_ms=1)))
    world.clock.advance(1)
    assert world.disk.count("sync", LOG) == before, "all is synced"
