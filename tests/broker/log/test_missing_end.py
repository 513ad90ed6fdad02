"""
Logs whose last batches were there once, and are damaged now.
"""

from errno import ENOSPC
from pathlib import Path
from typing import Any

import pytest
from twisted.logger import capturedLogs

from kgateway.broker.log.partition.partition import LogPartition
from kgateway.broker.log.segments.file_names import file_name
from kgateway.cluster.partition import Isolation
from kgateway.records.batch import Batch
from kgateway.records.record import records
from tests.broker.behaviour import START_MS, appended, batch, fetched, offsets, result, stored
from tests.broker.log.log_world import LogWorld
from tests.broker.log.test_flipped_bytes import flip

SIZE = len(batch(10).data)
LEADER_CHANGE = b"\0\0\0\2"  # the key of the control record: version 0, type 2


@pytest.fixture
def world(tmp_path: Path) -> LogWorld:
    return LogWorld(tmp_path)


def damage(world: LogWorld, number: int) -> None:
    flip(world.path / "t-0" / file_name(0, ".log"), number * SIZE + SIZE - 1)


def left(world: LogWorld, *, good: int) -> None:
    """
    Leave a log of batches of ten records after a clean stop. All but the first ones are damaged.
    """
    partition = world.log_partition()
    for _ in range(3):
        appended(partition, batch(10))
    result(world.broker.stop())
    for number in range(good, 3):
        damage(world, number)


def restarted(world: LogWorld, **options: Any) -> LogPartition:
    with capturedLogs():
        world.start(**options)
        return world.again()


def the_only(found: list[Batch]) -> Batch:
    [only] = found
    return only


@pytest.mark.parametrize("good", [0, 2])
@pytest.mark.parametrize("isolation", Isolation)
def test_consumers_get_past_the_missing_offsets(world: LogWorld, good: int, isolation: Isolation) -> None:
    """
    The log ends with a control batch, so consumers need not wait for the next record. Later starts write no other one.
    """
    left(world, good=good)
    for _ in range(3):
        partition = restarted(world)
        assert (partition.log_start, partition.high_watermark) == (0, 31)
        for offset in (good * 10, 29, 30):
            found = the_only(stored(fetched(partition, offset, isolation=isolation)))
            assert found.header.is_control
            assert (found.header.base_offset, found.header.last_offset) == (30, 30)
            assert found.header.partition_leader_epoch == 1
            assert found.header.max_timestamp == START_MS
            assert [record.key for record in records(found)] == [LEADER_CHANGE]
        assert offsets(fetched(partition, 0)) == ([0, 10] if good else [30])
        result(world.broker.stop())


def test_it_is_synced_where_acks_are(world: LogWorld) -> None:
    left(world, good=2)
    partition = restarted(world, topic_defaults={"kgateway.acks.fsync": "true"})
    assert (partition.synced_offset, partition.high_watermark) == (31, 31)


def test_no_offsets_that_were_deleted(world: LogWorld) -> None:
    """
    If the log starts after the missing offsets, nobody asks for them.
    """
    partition = world.log_partition()
    for _ in range(3):
        appended(partition, batch(10))
    result(partition.delete_before(30))
    result(world.broker.stop())
    for number in range(3):
        damage(world, number)
    partition = restarted(world)
    assert (partition.log_start, partition.log_end) == (30, 30)


def test_nor_where_records_follow(world: LogWorld) -> None:
    left(world, good=2)
    partition = restarted(world)
    appended(partition, batch())
    assert [each.header.base_offset for each in stored(fetched(partition, 25))] == [30, 31]
    world.restart()
    assert world.again().log_end == 32


def test_full_disk(world: LogWorld) -> None:
    """
    The partition is served; the next record, or the next start with space, ends the gap.
    """
    left(world, good=2)
    world.disk.failing["append .log"] = ENOSPC
    partition = restarted(world)
    assert partition.log_end == 30
    world.disk.failing.clear()
    assert appended(partition, batch()).base_offset == 30
    assert [each.header.base_offset for each in stored(fetched(partition, 25))] == [30]
