"""
Offsets that are committed in transactions, over the log on disk: they count with the marker, wherever the process ends.
"""

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
from twisted.internet.defer import Deferred

from kgateway.coordinating import state_shard
from kgateway.coordinating.places import STATE_TOPICS, place_of
from kgateway.groups.offsets import Place
from kgateway.security.permissions import Resource
from kgateway.transactions.markers import Ending, Markers
from kgateway.transactions.state import Identity
from kgateway.transactions.state import Place as TransactionPlace
from tests.broker.behaviour import result
from tests.broker.log.log_world import LogWorld
from tests.groups.coordinating import value
from tests.groups.test_restarts import EITHER, OnDisk

GROUPS = ("g", "h", "o")  # the first and the last have one log
TOPIC = STATE_TOPICS[Resource.GROUP]
PRODUCERS = range(70, 73)
EPOCH = 0


class Transacting(OnDisk):
    """
    Groups whose offsets are committed by producers, too.
    """

    def hold(self, producer_id: int, group_id: str, offset: int, partition: int = 0) -> None:
        """
        Commit in a transaction.
        """
        held = self.groups.simple(group_id)
        safe = self.groups.commit_in_transaction(held, (producer_id, EPOCH), [(Place("t", partition), value(offset))])
        assert safe is None

    def end(self, producer_id: int, commits: bool) -> None:
        """
        The marker, in the partition of each group.
        """
        for index in {self.index(group_id) for group_id in GROUPS}:
            self.mark(TransactionPlace(TOPIC, index), producer_id, commits)

    def index(self, group_id: str) -> int:
        """
        The partition that has the group.
        """
        return place_of(group_id, len(self.broker.view().topics[TOPIC].partitions))

    def mark(self, place: TransactionPlace, producer_id: int, commits: bool) -> None:
        written = self.parts.service(Markers).write(place, Ending(Identity(producer_id, EPOCH), commits, 0, 0))
        assert not isinstance(written, Deferred)

    def told(self, group_id: str) -> dict[int, int]:
        """
        What is committed, by partition.
        """
        return {place.partition: one.offset for place, one in self.groups.simple(group_id).offsets}

    def unstable(self, group_id: str) -> set[int]:
        offsets = self.groups.simple(group_id).offsets
        return {partition for partition in range(3) if offsets.is_unstable(Place("t", partition))}


@pytest.fixture
def world(tmp_path: Path) -> Transacting:
    made = Transacting(tmp_path)
    made.topic("t", 3)
    made.commit("g", 1)
    return made


@EITHER
@pytest.mark.parametrize("commits", [True, False])
def test_they_count_with_the_marker(again: Callable[[LogWorld], None], commits: bool, world: Transacting) -> None:
    """
    Before, the partition is unstable, also in the next process; behind it, and behind it alone, they count.
    """
    world.hold(70, "g", 5)
    world.hold(70, "h", 6, partition=2)
    for _ in range(2):
        assert (world.told("g"), world.unstable("g"), world.told("h"), world.unstable("h")) == ({0: 1}, {0}, {}, {2})
        world.restart(again)
    world.end(70, commits)
    for _ in range(2):
        assert (world.told("g"), world.unstable("g")) == ({0: 5 if commits else 1}, set())
        assert (world.told("h"), world.unstable("h")) == ({2: 6} if commits else {}, set())
        world.restart(again)


def test_markers_in_other_topics(world: Transacting) -> None:
    """
    They say nothing of groups, whatever the number of their partition.
    """
    world.hold(70, "g", 5)
    world.topic("other", 8)
    world.mark(TransactionPlace("other", world.index("g")), 70, True)
    assert (world.told("g"), world.unstable("g")) == ({0: 1}, {0})
    world.mark(TransactionPlace(TOPIC, world.index("g")), 70, True)
    assert (world.told("g"), world.unstable("g")) == ({0: 5}, set())


@pytest.mark.parametrize("commits", [True, False])
def test_markers_while_groups_are_loaded(commits: bool, world: Transacting, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    They are not missed, though the log was read before they were written.
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
    assert (world.told("g"), world.unstable("g")) == ({0: 5 if commits else 1}, set())


@pytest.mark.parametrize(("deleted", "kept"), [("g", "o"), ("o", "g")])
def test_others_in_the_transaction_of_a_deleted_group(deleted: str, kept: str, world: Transacting) -> None:
    """
    They are committed, whichever of those in one log it is.
    """
    assert world.index(deleted) == world.index(kept)
    for group_id in ("g", "o"):
        world.hold(70, group_id, 5)
    assert world.groups.delete(deleted) is None
    world.end(70, True)
    assert (world.told(kept), world.unstable(kept)) == ({0: 5}, set())


def test_a_group_that_is_deleted_meanwhile(world: Transacting) -> None:
    """
    What was to be committed goes with it.
    """
    world.hold(70, "g", 5)
    assert world.groups.delete("g") is None
    world.end(70, True)
    assert world.told("g") == {}
    world.restart(LogWorld.killed)
    assert (world.told("g"), world.unstable("g")) == ({}, set())


@pytest.mark.parametrize("seed", range(12))
def test_histories(seed: int, world: Transacting, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Whatever comes when, in whichever process: what was written last of what counts is the offset, though snapshots are
    taken all the time, and transactions are open over them.
    """
    chance = Random(seed)
    monkeypatch.setattr(state_shard, "SNAPSHOT_RECORDS", chance.choice((1, 5, 1_000)))
    rows: dict[tuple[str, int], list[tuple[int, int]]] = {("g", 0): [(0, 1)]}  # producer or 0, offset
    outcomes = {0: True}
    stands_for = dict.fromkeys(PRODUCERS, 0)  # of a producer, the number of its transaction

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
            assert world.told(one) == {partition: found[-1] for partition, found in counting.items() if found}
            waiting = {
                partition
                for (name, partition), found in rows.items()
                if name == one and any(row[0] not in outcomes for row in found)
            }
            assert world.unstable(one) == waiting
    assert result(world.groups.delete("g")) is None
