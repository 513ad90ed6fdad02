"""
In which order the groups of a state log are kept and loaded, and how a load ends before its time.
"""

from collections.abc import Iterator

import pytest
from twisted.logger import capturedLogs

from kgateway.coordinating import state_shard
from kgateway.groups.coding import encoded
from kgateway.groups.consumer.rows import Epoch, epoch_row
from kgateway.groups.group import GroupType
from kgateway.interfaces import KeyValue
from kgateway.wire.errors import ErrorCode, KafkaError
from tests.broker.behaviour import refusal, result
from tests.groups.coordinating import value
from tests.groups.test_shard import T0, World, classic, committed


def test_snapshot_in_the_order_of_the_log(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    What was written again comes later, as compaction would leave it.
    """
    monkeypatch.setattr(state_shard, "SNAPSHOT_RECORDS", 1)
    world = World([committed("g", 1), committed("g", 1, 1)]).started()
    for offset in (2, 3):
        world.shard.groups["g"].offsets.commit([(T0, value(offset))])
    assert world.log.snapshots == [[committed("g", 1, 1), committed("g", 3)]]


def test_newest_row_tells_the_kind() -> None:
    """
    Where a log has rows of both protocols for a group, it is of the kind of the newest.
    """
    consumer = encoded(epoch_row("g", Epoch(5, 0)))
    for records, kind in (
        ([classic("g", 3), consumer, classic("g", 4)], GroupType.CLASSIC),
        ([consumer, classic("g"), consumer], GroupType.CONSUMER),
    ):
        assert World(records).started().shard.groups["g"].group.type is kind


def test_load_that_fails() -> None:
    """
    Where the log cannot be read, the log file says why; who waits hears of it, and nobody is served.
    """
    world = World()

    def damaged() -> Iterator[list[KeyValue]]:
        yield [committed("g", 1)]
        yield [committed("h", 1)]
        raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "damaged")

    world.log.pieces = damaged()
    loaded = world.started().shard.when_loaded()
    with capturedLogs() as logged:
        world.turn()
    assert [event["log_level"].name for event in logged] == ["critical"]
    result(loaded)
    assert world.ended == [world.shard]
    assert refusal(world.shard.check).code is ErrorCode.NOT_COORDINATOR


def test_load_that_is_not_needed_any_more() -> None:
    """
    That a load ends because the log is lost is no failure, and is not told as one.
    """
    world = World([committed("g", 1)], [committed("h", 1)]).started()
    with capturedLogs() as logged:
        world.log.lose()
    assert logged == []
