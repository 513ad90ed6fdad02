"""
The state of coordinators survives compaction.
"""

from collections.abc import Callable
from pathlib import Path

import pytest
from twisted.internet.defer import Deferred

from kgateway.broker.log.partition.partition import LogPartition
from kgateway.cluster.partition import Origin
from kgateway.security.permissions import Resource
from kgateway.topic_partition import TopicPartition
from tests.broker.behaviour import noted, result
from tests.broker.log.compaction.jobs import keyed
from tests.broker.log.compaction.topic_model import read_all
from tests.broker.log.compaction.worlds import Compacted, altered
from tests.broker.log.log_world import LogWorld
from tests.groups.group_world import GroupWorld

EITHER = pytest.mark.parametrize("again", [LogWorld.restart, LogWorld.killed], ids=["stopped", "killed"])
TOPIC = "__consumer_offsets"


def replayed(world: Compacted) -> dict[bytes, bytes | None]:
    """
    The state as a coordinator replays it.
    """
    replay = world.state_log().replay()
    assert isinstance(replay, Deferred)
    found = dict(row for piece in result(replay) for row in piece)
    return {key: value for key, value in found.items() if value is not None}


def test_topic_of_states_is_made_as_kafka_makes_it(world: Compacted) -> None:
    """
    It is compacted, its records are not compressed, and its segments are small; broker configs for other topics do
    not apply.
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
    Configs that are not set have the gateway's values.
    """
    defaults = {"cleanup.policy": "delete", "min.insync.replicas": "2", "segment.bytes": "2000000"}
    world = Compacted(tmp_path, topic_defaults=defaults)
    world.state_log()
    config = world.broker.view().topics[TOPIC].config
    assert (config.cleanup_policy, config.segment_bytes, config.min_insync_replicas) == (("compact",), 104857600, 2)


def state(world: Compacted, rounds: int = 40) -> LogPartition:
    """
    Write a state with keys that change and keys that end.
    """
    log = world.state_log()
    altered(world.again(TOPIC), segment_bytes=500, min_cleanable_dirty_ratio=0.0)
    for n in range(rounds):
        noted(log, [(b"offset %d" % (n % 3), b"%d" % n), (b"group", b"%d" % n)])
    noted(log, [(b"offset 2", None)])
    noted(log, [(b"last", b"1")])
    world.again(TOPIC).segment_list.roll()
    return world.again(TOPIC)


@EITHER
def test_states_survive(again: Callable[[LogWorld], None], world: Compacted) -> None:
    """
    Coordinators replay the same state from a much shorter log, in this process and in the next.
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
    A snapshot of the state counts whatever becomes of earlier records.
    """
    state(world)
    log = world.state_log()
    result(log.snapshot(list(replayed(world).items())))
    noted(log, [(b"group", b"more")])
    world.again(TOPIC).segment_list.roll()
    before = replayed(world)
    world.round()
    assert replayed(world) == before
    again(world)
    assert replayed(world) == before


@EITHER
def test_what_was_deleted_after_a_snapshot_stays_away(again: Callable[[LogWorld], None], world: Compacted) -> None:
    """
    A snapshot with the key is older than its tombstone, which is kept as long as that snapshot is the last one.
    """
    log, partition = world.state_log(), world.again(TOPIC)
    altered(partition, segment_bytes=500, min_cleanable_dirty_ratio=0.0, delete_retention_ms=0)
    noted(log, [(b"stays", b"1"), (b"goes", b"1")])
    result(log.snapshot([(b"stays", b"1"), (b"goes", b"1")]))
    noted(log, [(b"goes", None)])
    for number in range(3):
        noted(log, [(b"stays", b"%d" % number)])
        world.again(TOPIC).segment_list.roll()
        world.now_ms += 1_000
        world.round()
    assert b"goes" in {record.key for record in read_all(partition)}
    again(world)
    assert replayed(world) == {b"stays": b"2"}
    result(world.state_log().snapshot([(b"stays", b"2")]))
    altered(world.again(TOPIC), segment_bytes=500, min_cleanable_dirty_ratio=0.0, delete_retention_ms=0)
    noted(world.state_log(), [(b"stays", b"3")])
    world.again(TOPIC).segment_list.roll()
    world.now_ms += 1_000
    world.round()
    assert b"goes" not in {record.key for record in read_all(world.again(TOPIC))}
    assert replayed(world) == {b"stays": b"3"}


def test_states_are_compacted_whatever_their_topic_says(world: Compacted) -> None:
    """
    A state topic that an older gateway created without `cleanup.policy` does not grow for ever.
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
    Records of coordinators are not checked as those of clients.
    """
    partition = state(world, 1)
    with_none = partition.log_end
    partition.append(keyed((None, b"marker")), Origin.COORDINATOR)
    assert partition.log_end == with_none + 1


class OnDisk(GroupWorld):
    """
    A coordinator of groups over the compacted state.
    """

    def __init__(self, world: Compacted) -> None:
        self.world = world
        super().__init__(lambda _: self.world.broker)

    def restart(self, again: Callable[[LogWorld], None]) -> None:
        """
        End the process and start another one.
        """
        if again is LogWorld.restart:
            self.parts.stop()
        again(self.world)
        self.broker = self.world.broker
        self.again()


@EITHER
def test_groups_survive(again: Callable[[LogWorld], None], world: Compacted) -> None:
    """
    All groups are unchanged, and deleted ones stay deleted, in the next process and in the one after.
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
    partition.segment_list.roll()
    world.round()
    assert len(read_all(partition)) < count / 4
    for _ in range(2):
        groups.restart(again)
        assert groups.state() == before
        groups.commit("g1", 7, partition=2)
        before["g1"][TopicPartition("t", 2)] = 7
