"""
Groups over the log on disk: committed offsets survive a restart, however the process ended.
"""

from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from twisted.internet.task import Clock

from kgateway.broker.log.data_folder.session import FolderSession
from kgateway.broker.log.files.disk import Disk
from kgateway.coordination import shard as coordinator_shard
from kgateway.groups.consumer.group import Answer, Client
from kgateway.interfaces import IBroker, KeyValue
from kgateway.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kgateway.security.permissions import Resource
from kgateway.topic_partition import TopicPartition
from kgateway.wire.errors import KafkaError
from tests.broker.behaviour import result
from tests.broker.log.log_brokers import log_broker
from tests.broker.log.log_world import LogWorld, NoLock
from tests.broker.log.lossy_disk import LossyDisk, PowerLoss
from tests.groups.consumer.model import Consumer
from tests.groups.group_world import GroupWorld, State

pytestmark = pytest.mark.usefixtures("power_goes")

EITHER = pytest.mark.parametrize("again", [LogWorld.restart, LogWorld.killed], ids=["stopped", "killed"])
DATA = Path("/data")
PLACE = TopicPartition("t", 0)
GROUP = Resource.GROUP, "g"


class OnDisk(GroupWorld):
    """
    A coordinator over a broker with a data folder.
    """

    def __init__(self, path: Path, partitions: int = 8) -> None:
        self.world = LogWorld(path, offsets_partitions=partitions)
        super().__init__(lambda _: self.world.broker)

    def restart(self, again: Callable[[LogWorld], None]) -> None:
        """
        End the process and start another one.
        """
        if again is LogWorld.restart:
            self.parts.stop()
        again(self.world)
        self.broker = self.world.broker
        self.clock = Clock()
        self.start()
        self.load()


@EITHER
@pytest.mark.parametrize("between_snapshots", [3, 1_000_000])
def test_offsets_survive_a_restart(
    again: Callable[[LogWorld], None], between_snapshots: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    They are restored from snapshots, the log, or both; deleted ones stay deleted.
    """
    monkeypatch.setattr(coordinator_shard, "SNAPSHOT_RECORDS", between_snapshots)
    world = OnDisk(tmp_path)
    world.topic("t", 8)
    for number in range(200):
        world.commit(f"g{number % 30}", number, partition=number % 8)
        if not number % 20:
            result(world.groups.delete(f"g{number % 30}"))
    state = world.state()
    for _ in range(2):
        world.restart(again)
        assert world.state() == state
        world.commit("g1", 7, partition=7)
        state["g1"] = world.state()["g1"]
    snapshots = list(tmp_path.glob("__consumer_offsets-*/kgateway.state-*"))
    assert bool(snapshots) == (between_snapshots == 3)


def test_snapshots_bound_the_replay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    After many commits to few partitions a start reads few records.
    """
    monkeypatch.setattr(coordinator_shard, "SNAPSHOT_RECORDS", 50)
    world = OnDisk(tmp_path, partitions=1)
    world.topic("t")
    for number in range(1_020):
        world.commit("g", number)
    world.restart(LogWorld.restart)
    [log] = world.broker.coordinators(Resource.GROUP)
    pieces: list[list[KeyValue]] = list(result(log.replay()))  # type: ignore[arg-type]  # a Deferred or not
    assert sum(len(piece) for piece in pieces) <= 51
    assert world.state() == {"g": {PLACE: 1_019}}


class Members(OnDisk):
    """
    A consumer group and its members.
    """

    def ask(self, request: ConsumerGroupHeartbeatRequest) -> Answer:
        group = self.groups.consumer("g", create=request.member_epoch == 0)
        return result(group.heartbeat(request, Client("client", "/127.0.0.1", lambda name: True)))

    def member(self, member_id: str, topic: str) -> Consumer:
        """
        A member that has joined.
        """
        member = Consumer(self, member_id, [topic])  # type: ignore[arg-type]  # it asks nothing else of a cluster
        member.beat()
        return member

    def shown(self) -> tuple[str, dict[str, int]]:
        """
        The group's state, and the epoch of each member.
        """
        described = self.groups.consumer("g", create=False).describe()
        return described.group_state, {member.member_id: member.member_epoch for member in described.members}


@EITHER
@pytest.mark.parametrize("between_snapshots", [3, 1_000_000])
def test_members_survive_a_restart(
    again: Callable[[LogWorld], None], between_snapshots: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    They continue in their epochs, although steps of members at their target were not written; one that missed its
    step is answered, and one in an epoch before the written one is fenced.
    """
    monkeypatch.setattr(coordinator_shard, "SNAPSHOT_RECORDS", between_snapshots)
    world = Members(tmp_path)
    world.topic("t")
    world.topic("u", 1)
    slow, a = world.member("slow", "t"), world.member("a", "t")
    for _ in range(3):
        world.clock.advance(1)
        slow.beat()
        a.beat()
    assert len(slow.owned) == len(a.owned) == 2
    told = slow.epoch
    members = [a]
    for number in range(4):
        world.clock.advance(1)
        members.append(world.member(f"b{number}", "u"))
        a.beat()
    for member in members:
        member.beat()
    assert a.epoch == told + 4
    world.restart(again)
    assert world.shown() == ("Stable", dict.fromkeys(["slow", *(member.member_id for member in members)], a.epoch))
    for member in [*members, slow]:
        member.beat()
        assert (member.fenced, member.epoch) == (0, a.epoch)
    with pytest.raises(KafkaError, match="FENCED_MEMBER_EPOCH"):
        world.ask(ConsumerGroupHeartbeatRequest(group_id="g", member_id="a", member_epoch=told - 1))


def test_the_internal_topic_has_the_configured_partitions(tmp_path: Path) -> None:
    broker = log_broker(tmp_path / "data", offsets_partitions=3)
    result(broker.start())
    broker.coordinator(*GROUP)
    assert len(broker.view().topics["__consumer_offsets"].partitions) == len(broker.coordinators(GROUP[0])) == 3


class Lossy:
    """
    A coordinator over a disk that may lose unsynced data, or stop in the middle of anything.
    """

    def __init__(self, seed: int) -> None:
        self.disk = LossyDisk(Random(seed))
        self.boot = "a boot"
        self.acknowledged: State = {}
        self.doubtful: State = {}

    def run(self, use: Callable[[GroupWorld], None]) -> None:
        """
        Run a process until it ends or is killed.
        """
        try:
            world = GroupWorld(self._make)
            world.load()
            use(world)
        except (PowerLoss, KafkaError):
            assert self.disk.off

    def commit(self, world: GroupWorld, group_id: str, offset: int) -> None:
        """
        Commit an offset, which may survive even if it is not acknowledged.
        """
        self.doubtful = {group_id: {PLACE: offset}}
        world.commit(group_id, offset)
        self.acknowledged[group_id] = {PLACE: offset}
        self.doubtful = {}

    def _make(self, now_ms: Callable[[], int]) -> IBroker:
        def open_session(path: Path, disk: Disk, node_id: int) -> FolderSession:
            return FolderSession.open(path, disk, node_id, boot_id=lambda: self.boot, lock=NoLock)

        broker = log_broker(DATA, now_ms=now_ms, disk=self.disk, open_session=open_session, offsets_partitions=2)
        result(broker.start())
        if "t" not in broker.view().topics:
            world = GroupWorld(lambda _: broker)
            world.topic("t")
            world.parts.stop()
        return broker


def commits(lossy: Lossy) -> Callable[[GroupWorld], None]:
    def use(world: GroupWorld) -> None:
        for number in range(30):
            lossy.commit(world, f"g{number % 3}", number)

    return use


def found(lossy: Lossy) -> State:
    """
    The state that the next process loads.
    """
    states: list[State] = []
    lossy.run(lambda world: states.append(world.state()))
    [state] = states
    return state


@pytest.mark.parametrize("seed", range(3))
def test_a_kill_at_any_moment_loses_no_acknowledged_offset(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    This includes moments in and after a snapshot; unacknowledged offsets are restored if they were in the log.
    """
    monkeypatch.setattr(coordinator_shard, "SNAPSHOT_RECORDS", 2)
    for operations in range(1, 400, 7):
        lossy = Lossy(seed)
        lossy.run(lambda world: world.commit("first", 1))
        lossy.acknowledged = {"first": {PLACE: 1}}
        lossy.disk.stop_after(operations)
        lossy.run(commits(lossy))
        lossy.disk = lossy.disk.kill()
        assert found(lossy) in (lossy.acknowledged, lossy.acknowledged | lossy.doubtful), operations


@pytest.mark.parametrize("seed", range(3))
def test_a_power_loss_at_any_moment_invents_no_offset(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Unsynced offsets may be lost; a snapshot has nothing that the log has lost, so no offset is newer than the
    acknowledged one or was never committed.
    """
    monkeypatch.setattr(coordinator_shard, "SNAPSHOT_RECORDS", 2)
    for operations in range(1, 400, 7):
        lossy = Lossy(seed)
        lossy.run(lambda world: world.commit("first", 1))
        lossy.disk.stop_after(operations)
        lossy.run(commits(lossy))
        most = lossy.acknowledged | lossy.doubtful | {"first": {PLACE: 1}}
        lossy.disk, lossy.boot = lossy.disk.crash(), "another boot"
        state = found(lossy)
        assert all(offset <= most[group_id][PLACE] for group_id, at in state.items() for offset in at.values()), (
            operations
        )
