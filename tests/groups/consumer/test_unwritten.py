"""
The step of a member that is not written, and members of which a log tells only how far they were once.
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
    A group in which `a` reads a topic alone, written last in the oldest epoch; others have brought it into the newest.
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
            self.comes(f"b{self.a.epoch}")
            self.written = list(self.log.rows)
            self.a.beat()

    def comes(self, member_id: str) -> None:
        """
        Somebody joins who reads nothing of what `a` does.
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


def test_nothing_is_written(world: World) -> None:
    """
    A member that has all of its target gets into the next epoch, and no row says so.
    """
    assert (world.a.epoch, world.epoch_shown()) == (NEWEST, NEWEST)
    assert world.log.rows == world.written


def test_a_step_in_which_something_changes_is_written(world: World) -> None:
    """
    So does not one that gets a partition.
    """
    world.grow_topic("t", 1)
    world.a.beat()
    assert len(world.log.rows) > len(world.written)
    world.reload()
    assert world.refused(world.a.epoch - 1) is ErrorCode.FENCED_MEMBER_EPOCH


def test_loaded(world: World) -> None:
    """
    A group is what it was: who has its target is in the epoch of it.
    """
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
def test_in_any_epoch_in_between(world: World, epoch: int) -> None:
    """
    Until it is heard of, a member may be in each epoch from the one that was written on: it goes on, fetches, and
    commits what it owns.
    """
    world.reload()
    world.group.check_fetch("a", epoch)
    check = world.group.check_commit("a", "i", epoch, transactional=False)
    for index in range(4):
        assert check is None or check(world.topic.id, index) is None
    assert world.told(world.in_epoch(epoch)).member_epoch == NEWEST
    assert world.log.rows == world.written


@pytest.mark.parametrize("epoch", [OLDEST - 1, NEWEST + 1])
def test_in_no_other_epoch(world: World, epoch: int) -> None:
    """
    What is older than what was written, or newer than what anybody was told, is refused as ever.
    """
    world.reload()
    assert world.refused(epoch) is ErrorCode.FENCED_MEMBER_EPOCH
    with pytest.raises(KafkaError, match="STALE_MEMBER_EPOCH"):
        world.group.check_fetch("a", epoch)


def test_heard_of(world: World) -> None:
    """
    Once it has said in which epoch it is, it is in no older one.
    """
    world.reload()
    world.told(world.in_epoch(OLDEST + 1))
    owned = world.owned()
    assert world.refused(OLDEST, topic_partitions=owned) is ErrorCode.FENCED_MEMBER_EPOCH
    assert world.refused(OLDEST + 1) is ErrorCode.FENCED_MEMBER_EPOCH
    assert world.told(world.in_epoch(OLDEST + 1, topic_partitions=owned)).member_epoch == NEWEST
    with pytest.raises(KafkaError, match="STALE_MEMBER_EPOCH"):
        world.group.check_fetch("a", OLDEST + 1)


def test_heard_of_in_the_newest(world: World) -> None:
    """
    The same of a member that has nothing to learn.
    """
    world.reload()
    world.told(world.in_epoch(NEWEST))
    for epoch in range(1, NEWEST):
        assert world.refused(epoch, topic_partitions=world.owned()) is ErrorCode.FENCED_MEMBER_EPOCH


def test_refused_is_not_heard_of(world: World) -> None:
    """
    A heartbeat that is refused has said nothing.
    """
    world.reload()
    assert world.refused(OLDEST, subscribed_topic_regex="(") is ErrorCode.INVALID_REGULAR_EXPRESSION
    assert world.epoch_shown() == NEWEST
    assert world.told(world.in_epoch(OLDEST)).member_epoch == NEWEST


def test_has_not_its_target_yet(world: World) -> None:
    """
    Of a member that is to get something else, the epoch before that is the newest in which it can be; it goes on from
    where it is, and then it is written.
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


def test_has_to_let_go(world: World) -> None:
    """
    A member that waits is in the epoch that was written with that, and in no other.
    """
    rival = Consumer(world, "c", ["t"])
    rival.beat()
    world.a.revokes = False
    world.a.beat()
    assert world.a.epoch == NEWEST
    world.comes("d")
    world.reload()
    assert world.epoch_shown() == NEWEST
    assert world.refused(NEWEST - 1) is ErrorCode.FENCED_MEMBER_EPOCH
    assert world.told(world.in_epoch(NEWEST)).member_epoch == NEWEST


def test_has_not_heard_what_was_written(world: World) -> None:
    """
    A member may be in the epoch before the one that was written, if it owns nothing else; it is not kept there.
    """
    Consumer(world, "c", ["t"]).beat()
    world.reload()
    assert world.refused(OLDEST - 1) is ErrorCode.FENCED_MEMBER_EPOCH
    assert world.told(world.in_epoch(OLDEST - 1, topic_partitions=world.owned())).member_epoch == NEWEST


def test_target_of_a_topic_that_is_gone(world: World) -> None:
    """
    A member that has of its target what is there yet is written.
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


def test_owns_of_a_topic_that_is_gone(world: World) -> None:
    """
    What is there no more a member has to let go, though it is its target.
    """
    world.add_topic("v", 1)
    world.told(world.in_epoch(NEWEST, subscribed_topic_names=["t", "v"]))
    world.a.sends_all, world.a.topics = True, ["t", "v"]
    world.a.beat()
    assert len(world.a.owned) == 5
    world.comes("c")
    world.config = GroupConfig(assignment_interval_ms=1000)
    world.drop_topic("v")
    world.a.beat()
    assert world.a.owned == {(world.topic.id, index) for index in range(4)}


def test_no_step(world: World) -> None:
    """
    Who stays in its epoch may still be in the one before, for all that is known.
    """
    world.config = GroupConfig(assignment_interval_ms=1000)
    world.told(world.in_epoch(NEWEST, subscribed_topic_names=["t", "v"]))
    assert world.told(world.in_epoch(NEWEST - 1, topic_partitions=world.owned())).member_epoch == NEWEST


def test_static_member_comes_back(world: World) -> None:
    """
    Who is away is in no epoch; who takes its place is written.
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


def test_joins_again(world: World) -> None:
    """
    A member that joins again in the epoch it was in has been written before.
    """
    world.reload()
    joining = world.in_epoch(0, rebalance_timeout_ms=1000, subscribed_topic_names=["t"], topic_partitions=[])
    assert world.told(joining).member_epoch == NEWEST
    world.reload()
    assert world.told(world.in_epoch(NEWEST)).member_epoch == NEWEST


def test_undone(world: World) -> None:
    """
    A step into an epoch that cannot be written after all is undone with it.
    """
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
