"""
The states of coordinators are compacted, and are there afterwards.
"""

from collections.abc import Callable
from pathlib import Path

import pytest
from twisted.internet.defer import Deferred

from kgateway.broker.log.partition import LogPartition
from kgateway.cluster.partition import Origin
from kgateway.groups.offsets import Place
from kgateway.security.permissions import Resource
from tests.broker.behaviour import noted, result
from tests.broker.log.compaction.compacted import read_all
from tests.broker.log.compaction.jobs import keyed
from tests.broker.log.compaction.worlds import Compacted, altered
from tests.broker.log.log_world import LogWorld
from tests.groups.coordinating import Coordinating

EITHER = pytest.mark.parametrize("again", [LogWorld.restart, LogWorld.killed], ids=["stopped", "killed"])
TOPIC = "__consumer_offsets"


def replayed(world: Compacted) -> dict[bytes, bytes | None]:
    """
    The state as a coordinator finds it.
    """
    replay = world.state_log().replay()
    assert isinstance(replay, Deferred)
    found = dict(row for piece in result(replay) for row in piece)
    return {key: value for key, value in found.items() if value is not None}


def test_topic_of_states_is_made_as_kafka_makes_it(world: Compacted) -> None:
    """
    It is compacted, its records are compressed by nobody, and its segments are small; what the broker sets for other
    topics does not touch that.
    """
    world.state_log()
    world.state_log("id", Resource.TRANSACTIONAL_ID)
    for name in (TOPIC, "__transaction_state"):
        topic = world.broker.view().topics[name]
        expected = {"cleanup.policy": "compact", "compression.type": "producer", "segment.bytes": "104857600"}
        assert dict(topic.config.overrides) == expected
        assert (topic.config.compacts, topic.config.deletes, topic.config.segment_bytes) == (True, False, 100 << 20)
        assert topic.internal


def test_topic_of_states_follows_the_broker(tmp_path: Path) -> None:
    """
    What is not set for it is as the gateway says.
    """
    defaults = {"cleanup.policy": "delete", "min.insync.replicas": "2", "segment.bytes": "2000000"}
    world = Compacted(tmp_path, topic_defaults=defaults)
    world.state_log()
    config = world.broker.view().topics[TOPIC].config
    assert (config.cleanup_policy, config.segment_bytes, config.min_insync_replicas) == (("compact",), 104857600, 2)


def state(world: Compacted, rounds: int = 40) -> LogPartition:
    """
    Write a state: keys that change, and some that end.
    """
    log = world.state_log()
    altered(world.again(TOPIC), segment_bytes=500, min_cleanable_dirty_ratio=0.0)
    for n in range(rounds):
        noted(log, [(b"offset %d" % (n % 3), b"%d" % n), (b"group", b"%d" % n)])
    noted(log, [(b"offset 2", None)])
    noted(log, [(b"last", b"1")])
    world.again(TOPIC).log.roll()
    return world.again(TOPIC)


@EITHER
def test_states_survive(again: Callable[[LogWorld], None], world: Compacted) -> None:
    """
    Coordinators find the same state as before in a log that is much shorter, in this process and in the next.
    """
    partition = state(world)
    before = replayed(world)
    assert sorted(before) == [b"group", b"last", b"offset 0", b"offset 1"]
    count = len(read_all(partition))
    world.round()
    assert world.work.folders == [f"{TOPIC}-0"]
    assert len(read_all(partition)) < count / 4
    assert replayed(world) == before
    again(world)
    assert replayed(world) == before
    noted(world.state_log(), [(b"group", b"more")])
    assert replayed(world) == before | {b"group": b"more"}


@EITHER
def test_snapshots_survive(again: Callable[[LogWorld], None], world: Compacted) -> None:
    """
    A snapshot of the state holds whatever becomes of the records before it.
    """
    state(world)
    log = world.state_log()
    result(log.snapshot(list(replayed(world).items())))
    noted(log, [(b"group", b"more")])
    world.again(TOPIC).log.roll()
    before = replayed(world)
    world.round()
    assert replayed(world) == before
    again(world)
    assert replayed(world) == before


@EITHER
def test_what_was_deleted_after_a_snapshot_stays_away(again: Callable[[LogWorld], None], world: Compacted) -> None:
    """
    A snapshot that has a key is older than its deletion, which is shown for as long as that snapshot is the last one.
    """
    log, partition = world.state_log(), world.again(TOPIC)
    altered(partition, segment_bytes=500, min_cleanable_dirty_ratio=0.0, delete_retention_ms=0)
    noted(log, [(b"stays", b"1"), (b"goes", b"1")])
    result(log.snapshot([(b"stays", b"1"), (b"goes", b"1")]))
    noted(log, [(b"goes", None)])
    for number in range(3):
        noted(log, [(b"stays", b"%d" % number)])
        world.again(TOPIC).log.roll()
        world.now_ms += 1_000
        world.round()
    assert b"goes" in {record.key for record in read_all(partition)}
    again(world)
    assert replayed(world) == {b"stays": b"2"}
    result(world.state_log().snapshot([(b"stays", b"2")]))
    altered(world.again(TOPIC), segment_bytes=500, min_cleanable_dirty_ratio=0.0, delete_retention_ms=0)
    noted(world.state_log(), [(b"stays", b"3")])
    world.again(TOPIC).log.roll()
    world.now_ms += 1_000
    world.round()
    assert b"goes" not in {record.key for record in read_all(world.again(TOPIC))}
    assert replayed(world) == {b"stays": b"3"}


def test_states_are_compacted_whatever_their_topic_says(world: Compacted) -> None:
    """
    A topic of states that an older gateway has made, without `cleanup.policy`, does not grow for ever.
    """
    partition = state(world)
    count = len(read_all(partition))
    altered(partition, cleanup_policy=("delete",))
    world.broker._view = world.broker.view().with_topic(partition.topic)  # type: ignore[attr-defined]  # a LogBroker's
    assert not world.broker.view().topics[TOPIC].config.compacts
    world.round()
    assert len(read_all(partition)) < count / 4


def test_states_have_keys_by_themselves(world: Compacted) -> None:
    """
    What coordinators write is not judged as what clients send.
    """
    partition = state(world, 1)
    with_none = partition.log_end
    partition.append(keyed((None, b"marker")), Origin.COORDINATOR)
    assert partition.log_end == with_none + 1


class OnDisk(Coordinating):
    """
    A coordinator of groups over it.
    """

    def __init__(self, world: Compacted) -> None:
        self.world = world
        super().__init__(lambda _: self.world.broker)

    def restart(self, again: Callable[[LogWorld], None]) -> None:
        """
        The process ends, and another one begins.
        """
        if again is LogWorld.restart:
            self.parts.stop()
        again(self.world)
        self.broker = self.world.broker
        self.again()


@EITHER
def test_groups_survive(again: Callable[[LogWorld], None], world: Compacted) -> None:
    """
    All groups are where they were, and what was deleted stays away, in the next process as in the one after.
    """
    groups = OnDisk(world)
    groups.topic("t", 3)
    world.state_log()
    altered(world.again(TOPIC), segment_bytes=2_000, min_cleanable_dirty_ratio=0.0)
    for number in range(120):
        groups.commit(f"g{number % 4}", number, partition=number % 3)
        if number % 30 == 7:
            result(groups.groups.delete(f"g{number % 4}"))
    before, partition = groups.state(), world.again(TOPIC)
    count = len(read_all(partition))
    assert count > 120
    assert len(before) == 4
    result(groups.groups.delete("g2"))
    del before["g2"]
    partition.log.roll()
    world.round()
    assert len(read_all(partition)) < count / 4
    for _ in range(2):
        groups.restart(again)
        assert groups.state() == before
        groups.commit("g1", 7, partition=2)
        before["g1"][Place("t", 2)] = 7
