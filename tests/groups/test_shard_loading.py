"""
The order in which the groups of a state log are stored and loaded, and loads that end early.
"""

from collections.abc import Iterator

import pytest
from twisted.logger import capturedLogs

from kgateway.coordination import shard as coordinator_shard
from kgateway.groups.consumer.records import Epoch, epoch_row
from kgateway.groups.group import GroupType
from kgateway.groups.records import encoded
from kgateway.interfaces import KeyValue
from kgateway.wire.errors import ErrorCode, KafkaError
from tests.broker.behaviour import refusal, result
from tests.groups.group_world import value
from tests.groups.test_shard import T0, World, classic, committed


def test_snapshots_have_the_order_of_the_log(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    A value that was rewritten is at the end, where compaction would leave it.
    """
    monkeypatch.setattr(coordinator_shard, "SNAPSHOT_RECORDS", 1)
    world = World([committed("g", 1), committed("g", 1, 1)]).started()
    for offset in (2, 3):
        world.shard.groups["g"].offsets.commit([(T0, value(offset))])
    assert world.log.snapshots == [[committed("g", 1, 1), committed("g", 3)]]


def test_the_newest_row_decides_the_kind() -> None:
    """
    The group has rows of both protocols.
    """
    consumer = encoded(epoch_row("g", Epoch(5, 0)))
    for records, kind in (
        ([classic("g", 3), consumer, classic("g", 4)], GroupType.CLASSIC),
        ([consumer, classic("g"), consumer], GroupType.CONSUMER),
    ):
        assert World(records).started().shard.groups["g"].group.type is kind


def test_a_failed_load_is_logged() -> None:
    """
    Those that wait are told, and nobody is served.
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


def test_a_load_cancelled_by_a_loss_is_no_failure() -> None:
    """
    The log was lost meanwhile.
    """
    world = World([committed("g", 1)], [committed("h", 1)]).started()
    with capturedLogs() as logged:
        world.log.lose()
    assert logged == []
