"""
What a group answers to heartbeats.
"""

from dataclasses import fields, replace
from weakref import ref

import pytest
from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from kgateway.groups.consumer.config import GroupConfig
from kgateway.groups.consumer.group import Answer
from kgateway.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kgateway.wire.errors import ErrorCode, KafkaError
from tests.groups.consumer.model import Cluster, Consumer, Watched

TopicPartition = ConsumerGroupHeartbeatRequest.TopicPartition
LOST = KafkaError(ErrorCode.NOT_COORDINATOR, "the log is elsewhere")


class GroupTestCase(SynchronousTestCase):
    config = GroupConfig(assignment_interval_ms=0)

    def setUp(self) -> None:
        self.cluster = Cluster(self.config)
        self.topic = self.cluster.add_topic("t", 4)

    def consumer(self, member_id: str, **more: object) -> Consumer:
        """
        A client that has joined.
        """
        consumer = Consumer(self.cluster, member_id, **{"topics": ["t"], **more})  # type: ignore[arg-type]
        consumer.beat()
        return consumer

    def settled(self, *consumers: Consumer) -> None:
        for _ in range(6):
            for consumer in consumers:
                consumer.beat()
            self.cluster.clock.advance(1)

    def request(self, member_id: str, epoch: int, **more: object) -> ConsumerGroupHeartbeatRequest:
        values = {"group_id": "g", "member_id": member_id, "member_epoch": epoch, **more}
        return ConsumerGroupHeartbeatRequest(**values)  # type: ignore[arg-type]

    def joining(self, member_id: str, **more: object) -> ConsumerGroupHeartbeatRequest:
        values = {"rebalance_timeout_ms": 60_000, "subscribed_topic_names": ["t"], "topic_partitions": [], **more}
        return self.request(member_id, 0, **values)

    def assert_refused(self, code: ErrorCode, request: ConsumerGroupHeartbeatRequest) -> None:
        with pytest.raises(KafkaError) as raised:
            self.cluster.ask(request)
        assert raised.value.code is code
        assert raised.value.message

    @property
    def epoch(self) -> int:
        return self.cluster.group.describe().group_epoch


class HeartbeatTests(GroupTestCase):
    def test_first_member_gets_all(self) -> None:
        """
        Who joins an empty group is told its partitions at once, in the first epoch after the initial one.
        """
        answer = self.cluster.told(self.joining("a"))
        assert (answer.member_id, answer.member_epoch, answer.heartbeat_interval_ms) == ("a", 2, 5000)
        assert answer.assignment
        [told] = answer.assignment.topic_partitions
        assert (told.topic_id, told.partitions) == (self.topic.id, [0, 1, 2, 3])
        assert self.cluster.group.state == "Stable"

    def test_id_by_the_server(self) -> None:
        """
        Who joins without a member id gets one.
        """
        answers = [self.cluster.told(self.joining("")) for _ in range(2)]
        assert answers[0].member_id
        assert answers[0].member_id != answers[1].member_id

    def test_assignment_only_when_it_changes(self) -> None:
        """
        A heartbeat is answered with the assignment where it changed, and where the member says all of itself.
        """
        a = self.consumer("a")
        first = a.beat()
        assert first
        assert first.assignment is None
        a.sends_all = True
        second = a.beat()
        assert second
        assert second.assignment

    def test_partition_waits_for_its_owner(self) -> None:
        """
        A partition is given when its owner has said that it let it go, and not before.
        """
        a = self.consumer("a", revokes=False)
        b = self.consumer("b")
        for _ in range(3):
            a.beat()
            b.beat()
        assert (a.epoch, b.epoch) == (2, 3)
        assert b.owned == set()
        assert self.cluster.group.state == "Reconciling"
        a.revokes = True
        a.reconcile()
        b.beat()
        assert b.owned == set()
        a.beat()
        b.beat()
        assert (a.said(), b.said(), a.epoch) == ({"t": [0, 1]}, {"t": [2, 3]}, 3)
        assert self.cluster.group.state == "Stable"

    def test_who_must_revoke_gets_nothing_yet(self) -> None:
        """
        A member that has partitions to let go does that before it gets others, and stays in its epoch.
        """
        self.cluster.add_topic("u", 2)
        a = self.consumer("a", topics=["t"])
        a.topics, a.sends_all, a.revokes = ["u"], True, False
        a.beat()
        assert (a.epoch, a.said(), a.target) == (2, {"t": [0, 1, 2, 3]}, set())
        a.revokes = True
        a.reconcile()
        a.beat()
        assert (a.epoch, a.said()) == (3, {"u": [0, 1]})

    def test_answer_is_lost(self) -> None:
        """
        A member that did not hear of its new epoch is taken back in the one before, if it owns nothing that it should
        not; two epochs behind it is fenced.
        """
        a = self.consumer("a")
        b = self.consumer("b")
        self.settled(a, b)
        a.leave()
        before = b.epoch
        b.beat(lost=True)
        assert b.epoch == before
        b.beat()
        assert (b.epoch, b.fenced) == (before + 1, 0)
        self.assert_refused(ErrorCode.FENCED_MEMBER_EPOCH, self.request("b", before - 1, topic_partitions=[]))

    def test_epoch_before_with_too_much(self) -> None:
        """
        In the epoch before, a member must say what it owns, and own no more than it is to have.
        """
        a = self.consumer("a")
        b = self.consumer("b")
        self.settled(a, b)
        assert a.epoch == 3
        for owned in (None, [TopicPartition(topic_id=self.topic.id, partitions=[0, 3])]):
            self.assert_refused(ErrorCode.FENCED_MEMBER_EPOCH, self.request("a", 2, topic_partitions=owned))
        self.cluster.told(
            self.request("a", 2, topic_partitions=[TopicPartition(topic_id=self.topic.id, partitions=[0])])
        )

    def test_epoch_to_come(self) -> None:
        """
        A member that is ahead of the group is fenced.
        """
        self.consumer("a")
        self.assert_refused(ErrorCode.FENCED_MEMBER_EPOCH, self.request("a", 3))

    def test_joins_again(self) -> None:
        """
        A fenced member joins again under its id, at any time, and is told all that it may read.
        """
        a = self.consumer("a")
        b = self.consumer("b")
        self.settled(a, b)
        epoch = self.epoch
        answer = self.cluster.told(self.joining("a"))
        assert answer.assignment
        assert [told.partitions for told in answer.assignment.topic_partitions] == [[0, 1]]
        assert (answer.member_epoch, self.epoch) == (3, epoch)

    def test_unknown_member(self) -> None:
        """
        Nobody can speak for a member that is not there.
        """
        self.assert_refused(ErrorCode.UNKNOWN_MEMBER_ID, self.request("a", 1))
        self.assert_refused(ErrorCode.UNKNOWN_MEMBER_ID, self.request("a", -1))

    def test_leaves(self) -> None:
        """
        A member that leaves is forgotten at once, and its partitions go to the others.
        """
        a, b = self.consumer("a"), self.consumer("b")
        self.settled(a, b)
        answer = self.cluster.told(self.request("b", -1))
        assert (answer.member_id, answer.member_epoch, answer.assignment) == ("b", -1, None)
        a.beat()
        assert a.said() == {"t": [0, 1, 2, 3]}
        self.cluster.told(self.request("a", -1))
        assert self.cluster.group.is_empty
        assert self.cluster.group.state == "Empty"
        assert self.cluster.group.empty_since_ms == self.cluster.now_ms()

    def test_no_room(self) -> None:
        """
        A full group takes nobody, but who is in it.
        """
        self.cluster.config = replace(self.config, max_size=1)
        a = self.consumer("a")
        self.assert_refused(ErrorCode.GROUP_MAX_SIZE_REACHED, self.joining("b"))
        assert a.beat()

    def test_assignor(self) -> None:
        """
        The assignor is what most members ask for, and the first one of the settings if nobody asks.
        """
        assert self.cluster.group.describe().assignor_name == "uniform"
        self.consumer("a", assignor="range")
        assert self.cluster.group.describe().assignor_name == "range"
        for member in ("b", "c"):
            self.consumer(member, assignor="uniform")
        assert self.cluster.group.describe().assignor_name == "uniform"

    def test_assignor_assigns(self) -> None:
        """
        Targets are made by the assignor that the group has.
        """
        self.cluster.add_topic("u", 1)
        for assignor, expected in (("range", [{"t": [0, 1], "u": [0]}, {"t": [2, 3]}]), ("uniform", None)):
            a = self.consumer("a", topics=["t", "u"], assignor=assignor)
            b = self.consumer("b", topics=["t", "u"], assignor=assignor)
            self.settled(a, b)
            if expected:
                assert [a.said(), b.said()] == expected
            else:
                assert sorted(map(len, (a.owned, b.owned))) == [2, 3]
            a.leave()
            b.leave()

    def test_client_is_noted(self) -> None:
        """
        What a member says of itself stays until it says something else.
        """
        self.cluster.told(self.joining("a", rack_id="r1", instance_id="i", server_assignor="range"))
        self.cluster.told(self.request("a", 2, instance_id="i"))
        [member] = self.cluster.group.describe().members
        assert (member.rack_id, member.instance_id, member.client_id) == ("r1", "i", "client")
        assert (member.client_host, member.subscribed_topic_names, member.member_type) == ("/127.0.0.1", ["t"], 1)

    def test_asks_for_another_assignor(self) -> None:
        """
        A heartbeat that says nothing but another assignor counts.
        """
        a = self.consumer("a", assignor="range")
        self.cluster.told(self.request("a", a.epoch, server_assignor="uniform"))
        assert self.cluster.group.describe().assignor_name == "uniform"

    def test_client_changes(self) -> None:
        """
        A member that goes on from another host, or as another client, is described as that.
        """
        a = self.consumer("a")
        for client_id, host in (("client", "/127.0.0.2"), ("other", "/127.0.0.2")):
            client = self.cluster.client()._replace(client_id=client_id, host=host)
            self.cluster.group.heartbeat(self.request("a", a.epoch), client)
            [member] = self.cluster.group.describe().members
            assert (member.client_id, member.client_host) == (client_id, host)

    def test_describe_shows_what_is_still_owned(self) -> None:
        """
        What a member has yet to let go is shown as its own, beside its target.
        """
        self.consumer("a", revokes=False)
        self.consumer("b")
        self.cluster.told(self.request("a", 2))
        a, _ = self.cluster.group.describe().members
        assert [part.partitions for part in a.assignment.topic_partitions] == [[0, 1, 2, 3]]
        assert [part.partitions for part in a.target_assignment.topic_partitions] == [[0, 1]]
        assert [part.topic_name for part in a.target_assignment.topic_partitions] == ["t"]

    def test_empty_subscription(self) -> None:
        """
        A member may subscribe to nothing: it is in the group, reads nothing and moves nobody.
        """
        a = self.consumer("a")
        self.consumer("b", topics=[])
        assert (self.epoch, self.cluster.group.state) == (2, "Stable")
        assert a.beat()


class StaticTests(GroupTestCase):
    def test_comes_back(self) -> None:
        """
        A static member that is away keeps its place; who comes back under its instance id gets it, and nobody else
        moves.
        """
        a = self.consumer("a", instance_id="i1")
        b = self.consumer("b", instance_id="i2")
        self.settled(a, b)
        epoch, owned = self.epoch, a.said()
        a.leave(-2)
        self.cluster.clock.advance(40)
        b.beat()
        back = self.consumer("c", instance_id="i1")
        assert (back.said(), self.epoch, b.beat() is not None) == (owned, epoch, True)
        assert {member.member_id for member in self.cluster.group.describe().members} == {"b", "c"}

    def test_away_too_long(self) -> None:
        """
        A static member that does not come back within its session is forgotten.
        """
        a = self.consumer("a", instance_id="i1")
        a.leave(-2)
        self.cluster.clock.advance(45)
        assert self.cluster.group.is_empty

    def test_predecessors_deadline_does_not_hit(self) -> None:
        """
        Who has taken a place has a session of its own.
        """
        a = self.consumer("a", instance_id="i1")
        a.leave(-2)
        self.cluster.clock.advance(44)
        self.consumer("c", instance_id="i1")
        self.cluster.clock.advance(44)
        assert not self.cluster.group.is_empty

    def test_place_is_taken(self) -> None:
        """
        An instance id belongs to one member at a time, as long as that has not left.
        """
        self.consumer("a", instance_id="i1")
        self.assert_refused(ErrorCode.UNRELEASED_INSTANCE_ID, self.joining("b", instance_id="i1"))

    def test_lost_join(self) -> None:
        """
        A static member that did not hear that it has joined joins once more.
        """
        self.consumer("a", instance_id="i1")
        assert self.cluster.told(self.joining("a", instance_id="i1")).member_epoch == 2

    def test_fenced_by_successor(self) -> None:
        """
        Who has been replaced is told so, whatever it asks.
        """
        a = self.consumer("a", instance_id="i1")
        a.leave(-2)
        self.consumer("b", instance_id="i1")
        for epoch in (2, -1, -2):
            self.assert_refused(ErrorCode.FENCED_INSTANCE_ID, self.request("a", epoch, instance_id="i1"))
        self.assert_refused(ErrorCode.UNKNOWN_MEMBER_ID, self.request("a", 2))

    def test_unknown_instance(self) -> None:
        """
        An instance id that nobody has is of no member.
        """
        for epoch in (1, -1, -2):
            self.assert_refused(ErrorCode.UNKNOWN_MEMBER_ID, self.request("a", epoch, instance_id="i1"))

    def test_away_has_let_go(self) -> None:
        """
        Who goes away while it has partitions to let go has let them go.
        """
        a = self.consumer("a", instance_id="i1", revokes=False)
        b = self.consumer("b", revokes=False)
        a.beat()
        a.leave(-2)
        b.beat()
        assert b.said() == {"t": [2, 3]}
        self.cluster.clock.advance(44)
        b.beat()
        back = self.consumer("c", instance_id="i1")
        assert back.said() == {"t": [0, 1]}

    def test_an_empty_group_holds_on_to_no_view(self) -> None:
        """
        It may stay empty for long, while topics come and go.
        """
        view = self.cluster.view
        self.cluster.view = Watched(**{each.name: getattr(view, each.name) for each in fields(view)})
        before = ref(self.cluster.view)
        self.consumer("a").leave()
        self.cluster.view = view
        assert before() is None

    def test_away_while_the_gateway_starts_again(self) -> None:
        """
        It had partitions to let go and has let them go, so its session alone counts, from the start on.
        """
        a = self.consumer("a", instance_id="i1", revokes=False, rebalance_timeout_ms=20_000)
        self.consumer("b", revokes=False)
        a.beat()
        a.leave(-2)
        self.cluster.reload()
        self.cluster.clock.advance(44)
        assert {member.member_id for member in self.cluster.group.describe().members} == {"a", "b"}

    def test_leaves_for_good(self) -> None:
        """
        A static member can leave for good.
        """
        a = self.consumer("a", instance_id="i1")
        a.leave(-1)
        assert self.cluster.group.is_empty
        self.assert_refused(ErrorCode.UNKNOWN_MEMBER_ID, self.request("a", -1, instance_id="i1"))


class DeadlineTests(GroupTestCase):
    def test_session(self) -> None:
        """
        Who is silent for its session is forgotten; a heartbeat begins it anew.
        """
        a, b = self.consumer("a"), self.consumer("b")
        self.cluster.clock.advance(44)
        b.beat()
        self.cluster.clock.advance(1)
        assert [member.member_id for member in self.cluster.group.describe().members] == ["b"]
        self.assert_refused(ErrorCode.UNKNOWN_MEMBER_ID, self.request("a", a.epoch))

    def test_session_by_config(self) -> None:
        """
        How long a session is, and how often heartbeats are sent, can be set for the group.
        """
        self.cluster.config = GroupConfig(session_timeout_ms=10_000, heartbeat_interval_ms=3_000)
        assert self.cluster.told(self.joining("a")).heartbeat_interval_ms == 3000
        self.cluster.clock.advance(10)
        assert self.cluster.group.is_empty

    def test_does_not_let_go(self) -> None:
        """
        Who does not let partitions go within its rebalance timeout is forgotten, though it sends heartbeats.
        """
        a = self.consumer("a", revokes=False, rebalance_timeout_ms=20_000)
        b = self.consumer("b")
        for second in range(21):
            assert a.fenced == 0, second
            a.beat()
            b.beat()
            self.cluster.clock.advance(1)
        b.beat()
        assert b.said() == {"t": [0, 1, 2, 3]}

    def test_lets_go_in_time(self) -> None:
        """
        Who has let go has no deadline for that any more.
        """
        a = self.consumer("a", rebalance_timeout_ms=20_000)
        b = self.consumer("b")
        for _ in range(30):
            a.beat()
            b.beat()
            self.cluster.clock.advance(1)
        assert (a.fenced, b.fenced) == (0, 0)

    def test_fenced_heartbeats_do_not_count(self) -> None:
        """
        Who is fenced is not heard: its session goes on to its end.
        """
        self.consumer("a")
        for _ in range(9):
            self.cluster.clock.advance(5)
            if not self.cluster.group.is_empty:
                self.assert_refused(ErrorCode.FENCED_MEMBER_EPOCH, self.request("a", 9))
        assert self.cluster.group.is_empty

    def test_stop(self) -> None:
        """
        A group that is coordinated elsewhere by now does nothing more.
        """
        self.consumer("a")
        written = len(self.cluster.log.rows)
        self.cluster.group.stop()
        self.cluster.clock.advance(100)
        assert len(self.cluster.log.rows) == written
        assert self.cluster.clock.getDelayedCalls() == []

    def test_nothing_is_left_to_wait_for(self) -> None:
        """
        Of members that are gone or have been replaced no timer is left.
        """
        a = self.consumer("a", revokes=False, instance_id="i1")
        b = self.consumer("b")
        a.beat()
        a.leave(-2)
        c = self.consumer("c", instance_id="i1")
        assert len(self.cluster.clock.getDelayedCalls()) == 2
        b.leave()
        c.leave()
        assert self.cluster.clock.getDelayedCalls() == []

    def test_shorter_session(self) -> None:
        """
        A session that is made shorter ends as early as the new one says.
        """
        a = self.consumer("a")
        self.cluster.config = replace(self.config, session_timeout_ms=10_000)
        a.beat()
        self.cluster.clock.advance(10)
        assert self.cluster.group.is_empty

    def test_cannot_be_written(self) -> None:
        """
        An expired member that cannot be removed now is removed a little later.
        """
        self.consumer("a")
        self.cluster.log.refusal = LOST
        self.cluster.clock.advance(45)
        assert not self.cluster.group.is_empty
        self.cluster.log.refusal = None
        self.cluster.clock.advance(1)
        assert self.cluster.group.is_empty

    def test_rejoining_gets_a_session(self) -> None:
        """
        A member that joins just after its predecessor of the same id has expired lives on.
        """
        self.consumer("a")
        self.cluster.clock.advance(45)
        self.consumer("a")
        self.cluster.clock.advance(44)
        assert not self.cluster.group.is_empty


class TopicTests(GroupTestCase):
    def test_topic_grows(self) -> None:
        """
        New partitions are given out with the next heartbeat.
        """
        a = self.consumer("a")
        self.cluster.grow_topic("t", 1)
        a.beat()
        assert (a.said(), self.epoch) == ({"t": [0, 1, 2, 3, 4]}, 3)

    def test_topic_comes(self) -> None:
        """
        A topic that a member waits for is read as soon as it is there.
        """
        a = self.consumer("a", topics=["u"])
        assert a.said() == {}
        self.cluster.add_topic("u", 2)
        a.beat()
        assert a.said() == {"u": [0, 1]}

    def test_topic_goes(self) -> None:
        """
        Partitions of a topic that is gone are taken away, and nothing of it is told.
        """
        a = self.consumer("a")
        self.cluster.drop_topic("t")
        a.beat()
        a.beat()
        assert (a.owned, self.cluster.group.state) == (set(), "Stable")
        assert self.cluster.group.describe().members[0].assignment.topic_partitions == []

    def test_topic_is_made_again(self) -> None:
        """
        A topic of the same name is another one.
        """
        a = self.consumer("a")
        self.cluster.drop_topic("t")
        made = self.cluster.add_topic("t", 4)
        a.beat()
        a.beat()
        assert {owned_id for owned_id, _ in a.owned} == {made.id}

    def test_other_topics_do_not_matter(self) -> None:
        """
        Topics that nobody reads begin no epoch.
        """
        a = self.consumer("a")
        self.cluster.add_topic("u", 2)
        a.beat()
        assert self.epoch == 2

    def test_reads(self) -> None:
        """
        The group tells which topics its members subscribe to, by name or expression.
        """
        self.cluster.add_topic("orders", 1)
        self.consumer("a")
        self.consumer("b", topics=None, pattern="o.*")
        group = self.cluster.group
        assert [group.reads(name) for name in ("t", "orders", "u")] == [True, True, False]
        self.cluster.told(self.request("b", -1))
        assert not group.reads("orders")


class PatternTests(GroupTestCase):
    def test_matches(self) -> None:
        """
        A member can subscribe by an expression that must match whole names.
        """
        self.cluster.add_topic("a-1", 1)
        self.cluster.add_topic("ba-1", 1)
        a = self.consumer("a", topics=None, pattern="a-[0-9]")
        assert a.said() == {"a-1": [0]}

    def test_names_and_pattern(self) -> None:
        """
        A member may subscribe both ways.
        """
        self.cluster.add_topic("a-1", 1)
        a = self.consumer("a", pattern="a-.*")
        assert a.said() == {"a-1": [0], "t": [0, 1, 2, 3]}

    def test_new_topic_matches(self) -> None:
        """
        A new topic is read as soon as a member sends a heartbeat, if it matches.
        """
        a = self.consumer("a", topics=None, pattern="a-.*")
        self.cluster.add_topic("a-1", 1)
        self.cluster.add_topic("b-1", 1)
        a.beat()
        assert a.said() == {"a-1": [0]}
        self.cluster.drop_topic("a-1")
        a.beat()
        a.beat()
        assert a.owned == set()

    def test_invalid(self) -> None:
        """
        What is no expression is refused, with what is wrong, and nothing has changed.
        """
        request = self.joining("a", subscribed_topic_names=None, subscribed_topic_regex="a(")
        with pytest.raises(KafkaError, match=r"missing \)") as raised:
            self.cluster.ask(request)
        assert raised.value.code is ErrorCode.INVALID_REGULAR_EXPRESSION
        assert self.cluster.group.is_empty
        assert self.cluster.log.rows == []

    def test_topics_that_may_not_be_known(self) -> None:
        """
        A topic that the member may not know of does not match; what changes in permissions shows after a while.
        """
        self.cluster.add_topic("a-1", 1)
        self.cluster.denied = {"a-1"}
        a = self.consumer("a", topics=None, pattern="a-.*")
        assert a.said() == {}
        self.cluster.denied = set()
        for _ in range(20):
            self.cluster.clock.advance(30)
            a.beat()
        assert a.said() == {"a-1": [0]}

    def test_changes_pattern(self) -> None:
        """
        A member can subscribe to another expression, or to none; what nobody subscribes to is forgotten.
        """
        self.cluster.add_topic("a-1", 1)
        self.cluster.add_topic("b-1", 1)
        a = self.consumer("a", topics=None, pattern="a-.*")
        a.pattern, a.sends_all = "b-.*", True
        a.beat()
        a.beat()
        assert a.said() == {"b-1": [0]}
        assert not self.cluster.group.reads("a-1")
        a.pattern, a.sends_all = "", True
        a.beat()
        a.beat()
        assert (a.said(), self.cluster.group.reads("b-1")) == ({}, False)

    def test_old_client(self) -> None:
        """
        Whose request has no place for an expression keeps the one it has.
        """
        self.cluster.add_topic("a-1", 1)
        a = self.consumer("a", topics=None, pattern="a-.*")
        self.cluster.told(self.request("a", a.epoch))
        assert self.cluster.group.describe().members[0].subscribed_topic_regex == "a-.*"


class IntervalTests(GroupTestCase):
    config = GroupConfig(assignment_interval_ms=1000)

    def test_targets_wait(self) -> None:
        """
        Targets are made once in an interval: who joins meanwhile is in the group, and waits.
        """
        a = self.consumer("a")
        self.cluster.clock.advance(0.5)
        b = self.consumer("b")
        assert (b.epoch, self.epoch, self.cluster.group.state) == (2, 3, "Assigning")
        a.beat()
        assert a.said() == {"t": [0, 1, 2, 3]}
        self.cluster.clock.advance(0.5)
        self.settled(a, b)
        assert (a.said(), b.said(), b.epoch) == ({"t": [0, 1]}, {"t": [2, 3]}, 3)

    def test_clock_goes_back(self) -> None:
        """
        Where the wall clock is set back, nobody waits for it.
        """
        a = self.consumer("a")
        self.cluster.clock.rightNow -= 1000
        b = self.consumer("b")
        assert b.epoch == 3
        assert a.epoch == 2


class WriteTests(GroupTestCase):
    def test_refused(self) -> None:
        """
        What cannot be written has not happened.
        """
        self.cluster.log.refusal = LOST
        self.assert_refused(ErrorCode.NOT_COORDINATOR, self.joining("a"))
        assert self.cluster.group.is_empty
        self.cluster.log.refusal = None
        assert self.cluster.told(self.joining("a")).member_epoch == 2

    def test_refused_after_a_new_view(self) -> None:
        """
        A new view that could not be acted on is acted on later.
        """
        a = self.consumer("a")
        self.cluster.grow_topic("t", 1)
        self.cluster.log.refusal = LOST
        a.beat()
        self.cluster.log.refusal = None
        a.beat()
        assert a.said() == {"t": [0, 1, 2, 3, 4]}

    def test_answers_wait(self) -> None:
        """
        An answer waits until what it tells of is safe, and so do answers after it.
        """
        self.cluster.log.slow = True
        first, second = self.cluster.ask(self.joining("a")), self.cluster.ask(self.request("a", 2))
        assert isinstance(first, Deferred)
        assert isinstance(second, Deferred)
        self.assertNoResult(first)
        self.assertNoResult(second)
        self.cluster.log.settle()
        assert self.successResultOf(first).member_epoch == 2
        assert self.successResultOf(second).member_epoch == 2
        assert isinstance(self.cluster.ask(self.request("a", 2)), Answer)

    def test_undone(self) -> None:
        """
        Where a write fails after all, it is undone, and all after it; who is in the group still has its session.
        """
        a = self.consumer("a")
        before = sorted(map(repr, self.cluster.group.rows()))
        self.cluster.log.slow = True
        answers = [
            self.cluster.ask(request) for request in (self.joining("b"), self.request("a", 2), self.joining("c"))
        ]
        self.cluster.ask(self.request("a", -1)).addErrback(lambda _: None)  # type: ignore[union-attr]
        self.cluster.log.slow = False
        self.cluster.log.settle(LOST)
        for answer in answers:
            assert isinstance(answer, Deferred)
            assert self.failureResultOf(answer, KafkaError).value is LOST
        assert sorted(map(repr, self.cluster.group.rows())) == before
        assert a.beat()
        a.leave()
        a = self.consumer("a")
        self.cluster.log.slow = True
        self.cluster.ask(self.request("a", -1)).addErrback(lambda _: None)  # type: ignore[union-attr]
        self.cluster.log.slow = False
        self.cluster.log.settle(LOST)
        self.cluster.clock.advance(45)
        assert self.cluster.group.is_empty

    def test_stopped_meanwhile(self) -> None:
        """
        Who waits for a write is told when the group is coordinated elsewhere.
        """
        self.cluster.log.slow = True
        answer = self.cluster.ask(self.joining("a"))
        self.cluster.group.stop()
        assert isinstance(answer, Deferred)
        assert self.failureResultOf(answer, KafkaError).value.code is ErrorCode.NOT_COORDINATOR
        self.cluster.log.settle()

    def test_heartbeat_writes_nothing(self) -> None:
        """
        Where nothing changes nothing is written.
        """
        a = self.consumer("a")
        written = len(self.cluster.log.rows)
        a.beat()
        assert len(self.cluster.log.rows) == written


class LoadTests(GroupTestCase):
    def test_goes_on(self) -> None:
        """
        After a restart members go on as if nothing had been: no epoch begins, nothing is written, no partition moves.
        """
        self.cluster.add_topic("a-1", 2)
        consumers = [
            self.consumer("a"),
            self.consumer("b", instance_id="i"),
            self.consumer("c", topics=None, pattern="a-.*"),
        ]
        self.settled(*consumers)
        before, written = [consumer.said() for consumer in consumers], len(self.cluster.log.rows)
        self.cluster.reload()
        self.settled(*consumers)
        assert [consumer.said() for consumer in consumers] == before
        assert len(self.cluster.log.rows) == written
        assert [consumer.fenced for consumer in consumers] == [0, 0, 0]

    def test_sessions_begin_anew(self) -> None:
        """
        Members have a whole session after a restart, and no more.
        """
        self.consumer("a")
        self.cluster.clock.advance(44)
        self.cluster.reload()
        self.cluster.clock.advance(44)
        assert not self.cluster.group.is_empty
        self.cluster.clock.advance(1)
        assert self.cluster.group.is_empty

    def test_revocations_begin_anew(self) -> None:
        """
        Who has partitions to let go has its time for that after a restart.
        """
        a = self.consumer("a", revokes=False, rebalance_timeout_ms=20_000)
        self.consumer("b")
        a.beat()
        self.cluster.reload()
        for _ in range(20):
            a.beat()
            self.cluster.clock.advance(1)
        assert "a" not in {member.member_id for member in self.cluster.group.describe().members}

    def test_topics_that_changed_meanwhile(self) -> None:
        """
        What became of topics while no server was there is seen after a restart.
        """
        a = self.consumer("a", topics=None, pattern="t|u")
        self.cluster.grow_topic("t", 1)
        self.cluster.add_topic("u", 1)
        self.cluster.reload()
        a.beat()
        assert a.said() == {"t": [0, 1, 2, 3, 4], "u": [0]}

    def test_nothing_is_left(self) -> None:
        """
        Of a group without members its epochs alone are left, and tombstones of those let go all.
        """
        a = self.consumer("a", topics=None, pattern="t")
        a.leave()
        assert {type(row.key).__name__ for row in self.cluster.log.compacted()} == {
            "ConsumerGroupMetadataKey",
            "ConsumerGroupTargetAssignmentMetadataKey",
        }
        self.cluster.reload()
        assert (self.cluster.group.is_empty, self.cluster.group.empty_since_ms, self.epoch) == (True, None, 3)


class CommitTests(GroupTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.a = self.consumer("a")
        self.b = self.consumer("b")
        self.settled(self.a, self.b)  # both in epoch 3; a owns 0 and 1 since 2, b 2 and 3 since 3

    def commit(self, member_id: str, epoch: int, index: int, *, transactional: bool = False) -> ErrorCode:
        try:
            check = self.cluster.group.check_commit(member_id, None, epoch, transactional=transactional)
            if check:
                check(self.topic.id, index)
        except KafkaError as error:
            return error.code
        return ErrorCode.NONE

    def test_current(self) -> None:
        """
        A member commits in its epoch.
        """
        assert self.commit("a", 3, 0) is ErrorCode.NONE

    def test_stale(self) -> None:
        """
        In an epoch before, it commits what it has owned since then, and nothing else.
        """
        assert self.commit("a", 2, 1) is ErrorCode.NONE
        assert self.commit("a", 2, 2) is ErrorCode.STALE_MEMBER_EPOCH
        assert self.commit("a", 1, 1) is ErrorCode.STALE_MEMBER_EPOCH
        assert self.commit("b", 2, 2) is ErrorCode.STALE_MEMBER_EPOCH
        assert self.commit("b", 4, 2) is ErrorCode.STALE_MEMBER_EPOCH

    def test_while_it_lets_go(self) -> None:
        """
        What it has yet to let go it commits, and nothing more when it has.
        """
        self.a.revokes = False
        for member_id in ("c", "d"):
            self.consumer(member_id)
        self.a.beat()
        assert len(self.a.target) == 1
        assert [self.commit("a", 2, index) for index in (0, 1)] == [ErrorCode.NONE, ErrorCode.NONE]
        self.a.revokes = True
        self.a.reconcile()
        self.a.beat()
        assert [self.commit("a", 2, index) for index in (0, 1)] == [ErrorCode.NONE, ErrorCode.STALE_MEMBER_EPOCH]

    def test_nobody(self) -> None:
        """
        Who is no member commits nothing, unless the group is empty.
        """
        assert self.commit("x", 3, 0) is ErrorCode.UNKNOWN_MEMBER_ID
        assert self.commit("", -1, 0) is ErrorCode.UNKNOWN_MEMBER_ID
        assert self.commit("", -1, 0, transactional=True) is ErrorCode.NONE
        self.a.leave()
        self.b.leave()
        assert self.commit("", -1, 0) is ErrorCode.NONE

    def test_successor_of_a_static_member(self) -> None:
        """
        Who has taken the place of another commits at once.
        """
        c = self.consumer("c", instance_id="i", topics=["t"])
        self.settled(self.a, self.b, c)
        c.leave(-2)
        d = self.consumer("d", instance_id="i")
        [(_, index)] = d.owned
        assert self.commit("d", 0, index) is ErrorCode.NONE

    def test_fetch(self) -> None:
        """
        Members fetch in their epoch; others may always.
        """
        check = self.cluster.group.check_fetch
        check(None, -1)
        check("a", 3)
        for member_id, epoch, code in (
            ("a", 2, ErrorCode.STALE_MEMBER_EPOCH),
            ("x", 3, ErrorCode.UNKNOWN_MEMBER_ID),
            (None, 3, ErrorCode.UNKNOWN_MEMBER_ID),
        ):
            with pytest.raises(KafkaError) as raised:
                check(member_id, epoch)
            assert raised.value.code is code
