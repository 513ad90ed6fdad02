"""
Steps of a member that are not written, and members whose rows have only an old epoch.
"""

import pytest
from twisted.internet.defer import Deferred

from kgateway.groups.consumer.config import GroupConfig
from kgateway.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kgateway.wire.errors import ErrorCode, KafkaError
from tests.groups.consumer.model import Cluster, Consumer

OLDEST, NEWEST = 3, 6
OWNS = ConsumerGroupHeartbeatRequest.TopicPartition


class World(Cluster):
    """
    A group in which only `a` reads a topic and is stored in the oldest epoch; other members have raised the group's
    epoch.
    """

    def __init__(self) -> None:
        super().__init__()
        self.topic = self.add_topic("t", 3)
        self.add_topic("u", 4)
        self.a = Consumer(self, "a", ["t"], instance_id="i")
        self.a.beat()
        self.grow_topic("t", 1)
        self.a.beat()
        self.others: list[Consumer] = []
        self.written = list(self.log.rows)
        while self.a.epoch < NEWEST:
            self.add_member(f"b{self.a.epoch}")
            self.written = list(self.log.rows)
            self.a.beat()

    def add_member(self, member_id: str) -> None:
        """
        Join a member that reads other topics than `a`.
        """
        self.others.append(Consumer(self, member_id, ["u"]))
        self.others[-1].beat()

    def in_epoch(self, epoch: int, **more: object) -> ConsumerGroupHeartbeatRequest:
        values = {"group_id": "g", "member_id": "a", "member_epoch": epoch, "instance_id": "i", **more}
        return ConsumerGroupHeartbeatRequest(**values)  # type: ignore[arg-type]

    def owned(self) -> list[OWNS]:
        return [OWNS(topic_id=self.topic.id, partitions=[0, 1, 2, 3])]

    def refused(self, epoch: int, **more: object) -> ErrorCode:
        with pytest.raises(KafkaError) as raised:
            self.ask(self.in_epoch(epoch, **more))
        return raised.value.code

    def epoch_shown(self) -> int:
        [shown] = [member.member_epoch for member in self.group.describe().members if member.member_id == "a"]
        return shown


@pytest.fixture
def world() -> World:
    return World()


def test_a_step_without_changes_is_not_written(world: World) -> None:
    """
    A member at its target moves to the next epoch.
    """
    assert (world.a.epoch, world.epoch_shown()) == (NEWEST, NEWEST)
    assert world.log.rows == world.written


def test_a_step_with_changes_is_written(world: World) -> None:
    """
    The member gets a partition.
    """
    world.grow_topic("t", 1)
    world.a.beat()
    assert len(world.log.rows) > len(world.written)
    world.reload()
    assert world.refused(world.a.epoch - 1) is ErrorCode.FENCED_MEMBER_EPOCH


def test_a_loaded_member_is_in_the_epoch_of_its_target(world: World) -> None:
    for other in world.others * 2:
        other.beat()
    written = list(world.log.rows)
    assert world.group.state == "Stable"
    world.reload()
    assert (world.group.state, world.epoch_shown()) == ("Stable", NEWEST)
    world.a.beat()
    assert (world.a.epoch, world.a.fenced) == (NEWEST, 0)
    assert world.log.rows == written


@pytest.mark.parametrize("epoch", range(OLDEST, NEWEST + 1))
def test_every_epoch_in_between_is_accepted(world: World, epoch: int) -> None:
    """
    Until its first heartbeat the member may be in any epoch since the written one, to continue, fetch and commit.
    """
    world.reload()
    world.group.check_fetch("a", epoch)
    check = world.group.check_commit("a", "i", epoch, transactional=False)
    for index in range(4):
        assert check is None or check(world.topic.id, index) is None
    assert world.told(world.in_epoch(epoch)).member_epoch == NEWEST
    assert world.log.rows == world.written


@pytest.mark.parametrize("epoch", [OLDEST - 1, NEWEST + 1])
def test_other_epochs_are_refused(world: World, epoch: int) -> None:
    """
    They are older than the written one, or newer than any response.
    """
    world.reload()
    assert world.refused(epoch) is ErrorCode.FENCED_MEMBER_EPOCH
    with pytest.raises(KafkaError, match="STALE_MEMBER_EPOCH"):
        world.group.check_fetch("a", epoch)


def test_a_reported_epoch_excludes_older_ones(world: World) -> None:
    world.reload()
    world.told(world.in_epoch(OLDEST + 1))
    owned = world.owned()
    assert world.refused(OLDEST, topic_partitions=owned) is ErrorCode.FENCED_MEMBER_EPOCH
    assert world.refused(OLDEST + 1) is ErrorCode.FENCED_MEMBER_EPOCH
    assert world.told(world.in_epoch(OLDEST + 1, topic_partitions=owned)).member_epoch == NEWEST
    with pytest.raises(KafkaError, match="STALE_MEMBER_EPOCH"):
        world.group.check_fetch("a", OLDEST + 1)


def test_a_report_of_the_newest_epoch_excludes_older_ones(world: World) -> None:
    world.reload()
    world.told(world.in_epoch(NEWEST))
    for epoch in range(1, NEWEST):
        assert world.refused(epoch, topic_partitions=world.owned()) is ErrorCode.FENCED_MEMBER_EPOCH


def test_a_refused_heartbeat_reports_no_epoch(world: World) -> None:
    world.reload()
    assert world.refused(OLDEST, subscribed_topic_regex="(") is ErrorCode.INVALID_REGULAR_EXPRESSION
    assert world.epoch_shown() == NEWEST
    assert world.told(world.in_epoch(OLDEST)).member_epoch == NEWEST


def test_a_member_short_of_its_target(world: World) -> None:
    """
    It can be in the epoch before the target's at most; it continues from there, and is then written.
    """
    world.grow_topic("t", 1)
    world.others[0].beat()
    world.reload()
    assert (world.group.state, world.epoch_shown()) == ("Reconciling", NEWEST)
    assert world.refused(NEWEST + 1) is ErrorCode.FENCED_MEMBER_EPOCH
    answer = world.told(world.in_epoch(OLDEST))
    assert answer.assignment
    assert answer.member_epoch == NEWEST + 1
    world.reload()
    assert world.refused(NEWEST) is ErrorCode.FENCED_MEMBER_EPOCH
    assert world.told(world.in_epoch(NEWEST + 1)).member_epoch == NEWEST + 1


def test_a_waiting_member_is_in_the_written_epoch(world: World) -> None:
    rival = Consumer(world, "c", ["t"])
    rival.beat()
    world.a.revokes = False
    world.a.beat()
    assert world.a.epoch == NEWEST
    world.add_member("d")
    world.reload()
    assert world.epoch_shown() == NEWEST
    assert world.refused(NEWEST - 1) is ErrorCode.FENCED_MEMBER_EPOCH
    assert world.told(world.in_epoch(NEWEST)).member_epoch == NEWEST


def test_a_lost_response_with_the_written_epoch(world: World) -> None:
    """
    The member may be in the epoch before if it owns nothing else, and moves on from there.
    """
    Consumer(world, "c", ["t"]).beat()
    world.reload()
    assert world.refused(OLDEST - 1) is ErrorCode.FENCED_MEMBER_EPOCH
    assert world.told(world.in_epoch(OLDEST - 1, topic_partitions=world.owned())).member_epoch == NEWEST


def test_a_step_without_a_deleted_topic_is_written(world: World) -> None:
    """
    The member has all of its target that still exists.
    """
    world.config = GroupConfig(assignment_interval_ms=1000)
    world.told(world.in_epoch(NEWEST, subscribed_topic_names=["t", "v"]))
    world.clock.advance(1)
    world.a.beat()
    world.clock.advance(1)
    world.add_topic("v", 1)
    world.others[0].beat()
    world.drop_topic("v")
    world.a.beat()
    assert (world.a.epoch, len(world.a.owned)) == (NEWEST + 2, 4)
    world.reload()
    world.a.beat()
    assert world.a.fenced == 0


def test_a_deleted_topic_has_to_be_revoked(world: World) -> None:
    """
    This holds even if it is in the member's target.
    """
    world.add_topic("v", 1)
    world.told(world.in_epoch(NEWEST, subscribed_topic_names=["t", "v"]))
    world.a.sends_all, world.a.topics = True, ["t", "v"]
    world.a.beat()
    assert len(world.a.owned) == 5
    world.add_member("c")
    world.config = GroupConfig(assignment_interval_ms=1000)
    world.drop_topic("v")
    world.a.beat()
    assert world.a.owned == {(world.topic.id, index) for index in range(4)}


def test_a_member_without_a_step_may_be_one_epoch_behind(world: World) -> None:
    world.config = GroupConfig(assignment_interval_ms=1000)
    world.told(world.in_epoch(NEWEST, subscribed_topic_names=["t", "v"]))
    assert world.told(world.in_epoch(NEWEST - 1, topic_partitions=world.owned())).member_epoch == NEWEST


def test_the_successor_of_an_absent_member_is_written(world: World) -> None:
    """
    A member that is away is in no epoch.
    """
    world.a.leave(-2)
    world.reload()
    assert world.epoch_shown() == -2
    assert world.refused(NEWEST) is ErrorCode.FENCED_MEMBER_EPOCH
    assert world.refused(NEWEST - 1, topic_partitions=[]) is ErrorCode.FENCED_MEMBER_EPOCH
    back = Consumer(world, "back", ["t"], instance_id="i")
    back.beat()
    assert (back.epoch, len(back.owned)) == (NEWEST, 4)
    world.reload()
    back.beat()
    assert (back.epoch, back.fenced) == (NEWEST, 0)


def test_a_rejoining_member_has_been_written(world: World) -> None:
    world.reload()
    joining = world.in_epoch(0, rebalance_timeout_ms=1000, subscribed_topic_names=["t"], topic_partitions=[])
    assert world.told(joining).member_epoch == NEWEST
    world.reload()
    assert world.told(world.in_epoch(NEWEST)).member_epoch == NEWEST


def test_a_failed_epoch_undoes_its_steps(world: World) -> None:
    world.log.slow = True
    Consumer(world, "c", ["u"]).begin()
    step = world.ask(world.in_epoch(NEWEST))
    assert isinstance(step, Deferred)
    assert world.epoch_shown() == NEWEST + 1
    world.log.slow = False
    world.log.settle(KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE))
    step.addErrback(lambda failure: failure.trap(KafkaError))
    assert world.epoch_shown() == NEWEST
    assert world.told(world.in_epoch(NEWEST)).member_epoch == NEWEST
