"""
What nobody needs goes by itself.
"""

from typing import ClassVar, cast

import pytest
from twisted.logger import capturedLogs

from kgateway.groups import clearing
from kgateway.groups.clearing import Clearing
from kgateway.groups.offsets import Place
from kgateway.groups.shard import Held, Shard
from kgateway.wire.errors import ErrorCode, KafkaError
from tests.broker.behaviour import START_MS, result
from tests.groups.beginning import empty_classic
from tests.groups.coordinating import Coordinating

CHECK_MS, MINUTES = 10_000, 1
CHECK_S, RETENTION_S = 10, 60


@pytest.fixture
def world() -> Coordinating:
    world = Coordinating(offsets_retention_check_interval_ms=CHECK_MS, offsets_retention_minutes=MINUTES)
    world.topic("t")
    return world


def test_old_offsets_go(world: Coordinating) -> None:
    """
    Offsets that are too old go at the next look, and with the last one the group.
    """
    world.commit("g", 1)
    world.clock.advance(30)
    world.commit("g", 2, partition=1)
    world.clock.pump([CHECK_S] * 3)
    assert world.state() == {"g": {Place("t", 1): 2}}
    world.clock.pump([CHECK_S] * 3)
    assert world.state() == {}
    world.again()
    assert world.state() == {}


def test_young_offsets_stay(world: Coordinating) -> None:
    """
    What is committed again and again stays.
    """
    for number in range(20):
        world.commit("g", number)
        world.clock.advance(CHECK_S)
    assert world.state() == {"g": {Place("t", 0): 19}}


def test_retention_of_old_clients(world: Coordinating) -> None:
    """
    An offset with a time of its own to expire goes at that time, later or earlier than others.
    """
    world.commit("g", 1, expires_ms=world.now_ms() + 15_000)
    world.commit("g", 2, partition=1, expires_ms=world.now_ms() + 200_000)
    world.clock.pump([CHECK_S] * 2)
    assert world.state() == {"g": {Place("t", 1): 2}}
    world.clock.pump([CHECK_S] * 16)
    assert world.state() == {"g": {Place("t", 1): 2}}
    world.clock.pump([CHECK_S] * 2)
    assert world.state() == {}


def test_group_that_became_empty(world: Coordinating) -> None:
    """
    A group without members keeps its offsets from when the last one left, also over a restart.
    """
    world.commit("g", 1)
    world.clock.advance(50)
    world.write_group("g")
    world.clock.pump([CHECK_S] * 5)
    assert world.state() == {"g": {Place("t", 0): 1}}
    world.clock.pump([CHECK_S] * 2)
    assert world.state() == {}


def test_empty_groups_go(world: Coordinating) -> None:
    """
    A group that has neither members nor offsets goes at the next look.
    """
    empty_classic(world.groups, "g")
    assert list(world.state()) == ["g"]
    world.clock.advance(CHECK_S)
    assert world.state() == {}


def test_groups_with_members_stay(world: Coordinating) -> None:
    """
    A group with members stays, also without offsets.
    """
    world.with_member("g")
    world.clock.pump([CHECK_S] * 3)
    assert world.state() == {"g": {}}


def test_groups_that_are_being_loaded(world: Coordinating) -> None:
    """
    What is not loaded yet is let alone.
    """
    elsewhere = Coordinating()
    empty_classic(elsewhere.groups, "g")
    held = elsewhere.groups.get("g")

    class Loading:
        is_serving = False
        groups: ClassVar = {"g": held}

        def delete(self, held: Held) -> None:
            raise AssertionError("it cannot be known that the group is empty")

    other = Clearing(world.parts, lambda: [cast(Shard, Loading())])
    with capturedLogs() as logged:
        world.clock.advance(CHECK_S)
    other.stop()
    assert logged == []


def test_offsets_of_a_deleted_topic(world: Coordinating) -> None:
    """
    When a topic is deleted its offsets go at once, of all groups, and those of other topics stay.
    """
    other = world.topic("other")
    for group_id in ("g", "h"):
        for topic in ("t", "other"):
            world.commit(group_id, 1, topic)
    result(world.broker.delete_topic(other.id))
    assert world.state() == {group_id: {Place("t", 0): 1} for group_id in ("g", "h")}
    world.again()
    assert world.state() == {group_id: {Place("t", 0): 1} for group_id in ("g", "h")}


def test_topic_deleted_behind_its_back(world: Coordinating) -> None:
    """
    Offsets of a topic that went while nobody coordinated go at the next look; so do those of an earlier topic.
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


def test_by_turns(world: Coordinating, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Many groups are looked through in pieces; one that goes in between and comes again is let alone.
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
    assert world.state() == {left[0]: {Place("t", 0): 2}}


def test_what_cannot_be_written_stays(world: Coordinating, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Where nothing can be written nothing goes, until it can.
    """
    world.commit("g", 1, committed_ms=START_MS - 1_000_000)

    def full(*_: object) -> None:
        raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "the disk is full")

    with monkeypatch.context() as patched:
        patched.setattr("kgateway.broker.memory_partition.MemoryPartition.append", full)
        with capturedLogs() as logged:
            world.clock.advance(CHECK_S)
        assert {event["log_level"].name for event in logged} == {"warn"}
        assert world.state() == {"g": {Place("t", 0): 1}}
    world.clock.advance(CHECK_S)
    assert world.state() == {}


def test_stopped_in_the_middle(world: Coordinating, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Who stops while it looks leaves no timer, and nothing in the log.
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
