"""
Offsets committed in transactions, over the log on disk: they count from the marker on, wherever the process ends.
"""

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
from twisted.internet.defer import Deferred

from kgateway.coordination import shard as coordinator_shard
from kgateway.coordination.placement import STATE_TOPICS, partition_for
from kgateway.security.permissions import Resource
from kgateway.topic_partition import TopicPartition
from kgateway.transactions.markers import MarkerEntry, MarkerWriter
from kgateway.transactions.state import ProducerIdAndEpoch
from tests.broker.behaviour import result
from tests.broker.log.log_world import LogWorld
from tests.groups.group_world import value
from tests.groups.test_restarts import EITHER, OnDisk

GROUPS = ("g", "h", "o")  # the first and the last share a log
TOPIC = STATE_TOPICS[Resource.GROUP]
PRODUCERS = range(70, 73)
EPOCH = 0


class TransactionalGroupWorld(OnDisk):
    """
    Groups whose offsets are committed by producers, too.
    """

    def hold(self, producer_id: int, group_id: str, offset: int, partition: int = 0) -> None:
        entry = self.groups.entry_or_new(group_id)
        committed = self.groups.commit_in_transaction(
            entry, (producer_id, EPOCH), [(TopicPartition("t", partition), value(offset))]
        )
        assert committed is None

    def end(self, producer_id: int, commits: bool) -> None:
        """
        Write the marker into the partition of each group.
        """
        for index in {self.index(group_id) for group_id in GROUPS}:
            self.mark(TopicPartition(TOPIC, index), producer_id, commits)

    def index(self, group_id: str) -> int:
        """
        The partition of the group.
        """
        return partition_for(group_id, len(self.broker.view().topics[TOPIC].partitions))

    def mark(self, place: TopicPartition, producer_id: int, commits: bool) -> None:
        written = self.parts.service(MarkerWriter).write(
            place, MarkerEntry(ProducerIdAndEpoch(producer_id, EPOCH), commits, 0, 0)
        )
        assert not isinstance(written, Deferred)

    def committed(self, group_id: str) -> dict[int, int]:
        """
        The committed offsets by partition.
        """
        return {place.index: one.offset for place, one in self.groups.entry_or_new(group_id).offsets}

    def unstable(self, group_id: str) -> set[int]:
        offsets = self.groups.entry_or_new(group_id).offsets
        return {partition for partition in range(3) if offsets.is_unstable(TopicPartition("t", partition))}


@pytest.fixture
def world(tmp_path: Path) -> TransactionalGroupWorld:
    made = TransactionalGroupWorld(tmp_path)
    made.topic("t", 3)
    made.commit("g", 1)
    return made


@EITHER
@pytest.mark.parametrize("commits", [True, False])
def test_offsets_count_from_the_marker_on(
    again: Callable[[LogWorld], None], commits: bool, world: TransactionalGroupWorld
) -> None:
    """
    Before it the partition is unstable, also in the next process.
    """
    world.hold(70, "g", 5)
    world.hold(70, "h", 6, partition=2)
    for _ in range(2):
        assert (world.committed("g"), world.unstable("g"), world.committed("h"), world.unstable("h")) == (
            {0: 1},
            {0},
            {},
            {2},
        )
        world.restart(again)
    world.end(70, commits)
    for _ in range(2):
        assert (world.committed("g"), world.unstable("g")) == ({0: 5 if commits else 1}, set())
        assert (world.committed("h"), world.unstable("h")) == ({2: 6} if commits else {}, set())
        world.restart(again)


def test_markers_in_other_topics_change_nothing(world: TransactionalGroupWorld) -> None:
    """
    The index of their partition does not matter.
    """
    world.hold(70, "g", 5)
    world.topic("other", 8)
    world.mark(TopicPartition("other", world.index("g")), 70, True)
    assert (world.committed("g"), world.unstable("g")) == ({0: 1}, {0})
    world.mark(TopicPartition(TOPIC, world.index("g")), 70, True)
    assert (world.committed("g"), world.unstable("g")) == ({0: 5}, set())


@pytest.mark.parametrize("commits", [True, False])
def test_markers_during_a_load_count(
    commits: bool, world: TransactionalGroupWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    The log was read before.
    """
    world.hold(70, "g", 5)
    world.parts.stop()
    world.world.restart()
    world.broker = world.world.broker
    log: Any = world.broker.coordinator(Resource.GROUP, "g")
    replayed, read = log.replay(), Deferred[Any]()
    monkeypatch.setattr(log, "replay", lambda: read)
    world.start()
    (loading,) = world.groups.loading(["g"])
    world.end(70, commits)
    assert not loading.called
    replayed.chainDeferred(read)
    world.load()
    assert (world.committed("g"), world.unstable("g")) == ({0: 5 if commits else 1}, set())


@pytest.mark.parametrize(("deleted", "kept"), [("g", "o"), ("o", "g")])
def test_a_deleted_group_leaves_its_transaction_alone(deleted: str, kept: str, world: TransactionalGroupWorld) -> None:
    """
    The offsets of other groups in it are committed.
    """
    assert world.index(deleted) == world.index(kept)
    for group_id in ("g", "o"):
        world.hold(70, group_id, 5)
    assert world.groups.delete(deleted) is None
    world.end(70, True)
    assert (world.committed(kept), world.unstable(kept)) == ({0: 5}, set())


def test_a_deleted_group_loses_its_pending_offsets(world: TransactionalGroupWorld) -> None:
    world.hold(70, "g", 5)
    assert world.groups.delete("g") is None
    world.end(70, True)
    assert world.committed("g") == {}
    world.restart(LogWorld.killed)
    assert (world.committed("g"), world.unstable("g")) == ({}, set())


@pytest.mark.parametrize("seed", range(12))
def test_the_last_valid_offset_counts(
    seed: int, world: TransactionalGroupWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    Events come in any order and process, while snapshots are taken and transactions are open over them.
    """
    chance = Random(seed)
    monkeypatch.setattr(coordinator_shard, "SNAPSHOT_RECORDS", chance.choice((1, 5, 1_000)))
    rows: dict[tuple[str, int], list[tuple[int, int]]] = {("g", 0): [(0, 1)]}  # a producer or 0, and an offset
    outcomes = {0: True}
    stands_for = dict.fromkeys(PRODUCERS, 0)  # the number of a producer's current transaction

    def number(producer_id: int) -> int:
        return producer_id + 1_000 * stands_for[producer_id]

    for offset in range(2, 80):
        group_id, partition, producer_id = chance.choice(GROUPS), chance.randrange(3), chance.choice(PRODUCERS)
        turn = chance.random()
        if turn < 0.3:
            world.commit(group_id, offset, partition=partition)
            rows.setdefault((group_id, partition), []).append((0, offset))
        elif turn < 0.75:
            world.hold(producer_id, group_id, offset, partition)
            rows.setdefault((group_id, partition), []).append((number(producer_id), offset))
        elif turn < 0.9:
            commits = chance.random() < 0.5
            world.end(producer_id, commits)
            outcomes[number(producer_id)] = commits
            stands_for[producer_id] += 1
        else:
            world.restart(chance.choice((LogWorld.restart, LogWorld.killed)))
        for one in GROUPS:
            counting = {
                partition: [row[1] for row in found if outcomes.get(row[0])]
                for (name, partition), found in rows.items()
                if name == one
            }
            assert world.committed(one) == {partition: found[-1] for partition, found in counting.items() if found}
            waiting = {
                partition
                for (name, partition), found in rows.items()
                if name == one and any(row[0] not in outcomes for row in found)
            }
            assert world.unstable(one) == waiting
    assert result(world.groups.delete("g")) is None
