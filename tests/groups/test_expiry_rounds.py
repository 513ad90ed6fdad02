"""
Rounds that delete expired offsets and empty groups.
"""

from typing import ClassVar, cast

import pytest
from twisted.logger import capturedLogs

from kgateway.groups import expiry as clearing
from kgateway.groups.expiry import OffsetExpiry
from kgateway.groups.shard import GroupEntry, GroupShard
from kgateway.topic_partition import TopicPartition
from kgateway.wire.errors import ErrorCode, KafkaError
from tests.broker.behaviour import START_MS, result
from tests.groups.empty_groups import empty_classic
from tests.groups.group_world import GroupWorld

CHECK_MS, MINUTES = 10_000, 1
CHECK_S, RETENTION_S = 10, 60


@pytest.fixture
def world() -> GroupWorld:
    world = GroupWorld(offsets_retention_check_interval_ms=CHECK_MS, offsets_retention_minutes=MINUTES)
    world.topic("t")
    return world


def test_expired_offsets_are_deleted(world: GroupWorld) -> None:
    """
    The next round deletes them, and with the last one the group.
    """
    world.commit("g", 1)
    world.clock.advance(30)
    world.commit("g", 2, partition=1)
    world.clock.pump([CHECK_S] * 3)
    assert world.state() == {"g": {TopicPartition("t", 1): 2}}
    world.clock.pump([CHECK_S] * 3)
    assert world.state() == {}
    world.again()
    assert world.state() == {}


def test_offsets_that_are_committed_regularly_are_kept(world: GroupWorld) -> None:
    for number in range(20):
        world.commit("g", number)
        world.clock.advance(CHECK_S)
    assert world.state() == {"g": {TopicPartition("t", 0): 19}}


def test_retention_times_of_old_clients(world: GroupWorld) -> None:
    """
    An offset with its own expiry time is deleted at that time, before or after others.
    """
    world.commit("g", 1, expires_ms=world.now_ms() + 15_000)
    world.commit("g", 2, partition=1, expires_ms=world.now_ms() + 200_000)
    world.clock.pump([CHECK_S] * 2)
    assert world.state() == {"g": {TopicPartition("t", 1): 2}}
    world.clock.pump([CHECK_S] * 16)
    assert world.state() == {"g": {TopicPartition("t", 1): 2}}
    world.clock.pump([CHECK_S] * 2)
    assert world.state() == {}


def test_age_is_counted_from_the_last_member(world: GroupWorld) -> None:
    """
    This survives a restart.
    """
    world.commit("g", 1)
    world.clock.advance(50)
    world.write_group("g")
    world.clock.pump([CHECK_S] * 5)
    assert world.state() == {"g": {TopicPartition("t", 0): 1}}
    world.clock.pump([CHECK_S] * 2)
    assert world.state() == {}


def test_empty_groups_without_offsets_are_deleted(world: GroupWorld) -> None:
    empty_classic(world.groups, "g")
    assert list(world.state()) == ["g"]
    world.clock.advance(CHECK_S)
    assert world.state() == {}


def test_groups_with_members_are_kept(world: GroupWorld) -> None:
    """
    They need no offsets.
    """
    world.with_member("g")
    world.clock.pump([CHECK_S] * 3)
    assert world.state() == {"g": {}}


def test_loading_groups_are_skipped(world: GroupWorld) -> None:
    elsewhere = GroupWorld()
    empty_classic(elsewhere.groups, "g")
    entry = elsewhere.groups.entry("g")

    class Loading:
        is_serving = False
        groups: ClassVar = {"g": entry}

        def delete(self, entry: GroupEntry) -> None:
            raise AssertionError("it cannot be known that the group is empty")

    other = OffsetExpiry(world.parts, lambda: [cast(GroupShard, Loading())])
    with capturedLogs() as logged:
        world.clock.advance(CHECK_S)
    other.stop()
    assert logged == []


def test_offsets_of_a_deleted_topic_are_deleted_at_once(world: GroupWorld) -> None:
    """
    Other topics in all groups are kept.
    """
    other = world.topic("other")
    for group_id in ("g", "h"):
        for topic in ("t", "other"):
            world.commit(group_id, 1, topic)
    result(world.broker.delete_topic(other.id))
    assert world.state() == {group_id: {TopicPartition("t", 0): 1} for group_id in ("g", "h")}
    world.again()
    assert world.state() == {group_id: {TopicPartition("t", 0): 1} for group_id in ("g", "h")}


def test_topics_deleted_while_stopped(world: GroupWorld) -> None:
    """
    The next round deletes the offsets of topics deleted while no coordinator ran, and of earlier topics of the same
    name.
    """
    other = world.topic("other")
    world.commit("g", 1, "other")
    world.commit("g", 2, "t")
    world.parts.stop()
    result(world.broker.delete_topic(other.id))
    result(world.broker.delete_topic(world.broker.view().topics["t"].id))
    world.topic("t")
    world.start()
    assert len(world.state()["g"]) == 2
    world.clock.advance(CHECK_S)
    assert world.state() == {}


def test_groups_are_examined_in_slices(world: GroupWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    A group that is deleted and recreated in between is skipped.
    """
    monkeypatch.setattr(clearing, "_PIECE", 1)
    for number in range(20):
        world.commit(f"g{number}", 1, committed_ms=0)
    world.clock.rightNow += CHECK_S
    call = world.clock.calls.pop(0)
    call.called = 1
    call.func()
    left = list(world.state())
    assert 11 <= len(left) < 20
    result(world.groups.delete(left[0]))
    world.commit(left[0], 2)
    world.clock.advance(0)
    world.again()
    assert world.state() == {left[0]: {TopicPartition("t", 0): 2}}


def test_a_failed_deletion_is_retried(world: GroupWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Nothing is deleted until writing works.
    """
    world.commit("g", 1, committed_ms=START_MS - 1_000_000)

    def full(*_: object) -> None:
        raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "the disk is full")

    with monkeypatch.context() as patched:
        patched.setattr("kgateway.broker.memory.MemoryPartition.append", full)
        with capturedLogs() as logged:
            world.clock.advance(CHECK_S)
        assert {event["log_level"].name for event in logged} == {"warn"}
        assert world.state() == {"g": {TopicPartition("t", 0): 1}}
    world.clock.advance(CHECK_S)
    assert world.state() == {}


def test_a_stopped_round_leaves_no_timer(world: GroupWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    It logs nothing.
    """
    monkeypatch.setattr(clearing, "_PIECE", 1)
    for number in range(20):
        empty_classic(world.groups, f"g{number}")
    world.clock.rightNow += CHECK_S
    call = world.clock.calls.pop(0)
    call.called = 1
    call.func()
    world.parts.stop()
    assert world.clock.getDelayedCalls() == []
