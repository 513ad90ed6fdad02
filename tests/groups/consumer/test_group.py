"""
How a consumer group answers heartbeats.
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
    def test_the_first_member_gets_all_partitions(self) -> None:
        """
        It gets them at once, in the first epoch after the initial one.
        """
        answer = self.cluster.told(self.joining("a"))
        assert (answer.member_id, answer.member_epoch, answer.heartbeat_interval_ms) == ("a", 2, 5000)
        assert answer.assignment
        [told] = answer.assignment.topic_partitions
        assert (told.topic_id, told.partitions) == (self.topic.id, [0, 1, 2, 3])
        assert self.cluster.group.state == "Stable"

    def test_the_server_assigns_missing_member_ids(self) -> None:
        answers = [self.cluster.told(self.joining("")) for _ in range(2)]
        assert answers[0].member_id
        assert answers[0].member_id != answers[1].member_id

    def test_an_assignment_is_sent_when_it_changes(self) -> None:
        """
        It is also sent to a member that sends its full state.
        """
        a = self.consumer("a")
        first = a.beat()
        assert first
        assert first.assignment is None
        a.sends_all = True
        second = a.beat()
        assert second
        assert second.assignment

    def test_a_partition_waits_for_its_owner(self) -> None:
        """
        It is assigned once its owner has reported the revocation.
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
        assert (a.owned_by_topic(), b.owned_by_topic(), a.epoch) == ({"t": [0, 1]}, {"t": [2, 3]}, 3)
        assert self.cluster.group.state == "Stable"

    def test_a_member_gets_nothing_before_it_revokes(self) -> None:
        """
        It remains in its epoch until then.
        """
        self.cluster.add_topic("u", 2)
        a = self.consumer("a", topics=["t"])
        a.topics, a.sends_all, a.revokes = ["u"], True, False
        a.beat()
        assert (a.epoch, a.owned_by_topic(), a.target) == (2, {"t": [0, 1, 2, 3]}, set())
        a.revokes = True
        a.reconcile()
        a.beat()
        assert (a.epoch, a.owned_by_topic()) == (3, {"u": [0, 1]})

    def test_a_member_with_a_lost_response_is_accepted(self) -> None:
        """
        In the previous epoch it must own nothing that it should not; two epochs behind it is fenced.
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

    def test_the_previous_epoch_needs_a_report(self) -> None:
        """
        The member must report what it owns, and own no more than is assigned.
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

    def test_a_future_epoch_is_fenced(self) -> None:
        self.consumer("a")
        self.assert_refused(ErrorCode.FENCED_MEMBER_EPOCH, self.request("a", 3))

    def test_a_fenced_member_may_rejoin(self) -> None:
        """
        It keeps its id and gets its whole assignment.
        """
        a = self.consumer("a")
        b = self.consumer("b")
        self.settled(a, b)
        epoch = self.epoch
        answer = self.cluster.told(self.joining("a"))
        assert answer.assignment
        assert [told.partitions for told in answer.assignment.topic_partitions] == [[0, 1]]
        assert (answer.member_epoch, self.epoch) == (3, epoch)

    def test_unknown_members_are_refused(self) -> None:
        self.assert_refused(ErrorCode.UNKNOWN_MEMBER_ID, self.request("a", 1))
        self.assert_refused(ErrorCode.UNKNOWN_MEMBER_ID, self.request("a", -1))

    def test_a_leaving_member_is_removed_at_once(self) -> None:
        """
        The other members get its partitions.
        """
        a, b = self.consumer("a"), self.consumer("b")
        self.settled(a, b)
        answer = self.cluster.told(self.request("b", -1))
        assert (answer.member_id, answer.member_epoch, answer.assignment) == ("b", -1, None)
        a.beat()
        assert a.owned_by_topic() == {"t": [0, 1, 2, 3]}
        self.cluster.told(self.request("a", -1))
        assert self.cluster.group.is_empty
        assert self.cluster.group.state == "Empty"
        assert self.cluster.group.empty_since_ms == self.cluster.now_ms()

    def test_a_full_group_refuses_new_members(self) -> None:
        self.cluster.config = replace(self.config, max_size=1)
        a = self.consumer("a")
        self.assert_refused(ErrorCode.GROUP_MAX_SIZE_REACHED, self.joining("b"))
        assert a.beat()

    def test_the_majority_chooses_the_assignor(self) -> None:
        """
        Without votes it is the first one of the settings.
        """
        assert self.cluster.group.describe().assignor_name == "uniform"
        self.consumer("a", assignor="range")
        assert self.cluster.group.describe().assignor_name == "range"
        for member in ("b", "c"):
            self.consumer(member, assignor="uniform")
        assert self.cluster.group.describe().assignor_name == "uniform"

    def test_targets_are_made_by_the_chosen_assignor(self) -> None:
        self.cluster.add_topic("u", 1)
        for assignor, expected in (("range", [{"t": [0, 1], "u": [0]}, {"t": [2, 3]}]), ("uniform", None)):
            a = self.consumer("a", topics=["t", "u"], assignor=assignor)
            b = self.consumer("b", topics=["t", "u"], assignor=assignor)
            self.settled(a, b)
            if expected:
                assert [a.owned_by_topic(), b.owned_by_topic()] == expected
            else:
                assert sorted(map(len, (a.owned, b.owned))) == [2, 3]
            a.leave()
            b.leave()

    def test_a_member_keeps_its_profile(self) -> None:
        """
        It holds until the member changes it.
        """
        self.cluster.told(self.joining("a", rack_id="r1", instance_id="i", server_assignor="range"))
        self.cluster.told(self.request("a", 2, instance_id="i"))
        [member] = self.cluster.group.describe().members
        assert (member.rack_id, member.instance_id, member.client_id) == ("r1", "i", "client")
        assert (member.client_host, member.subscribed_topic_names, member.member_type) == ("/127.0.0.1", ["t"], 1)

    def test_a_change_of_assignor_alone_counts(self) -> None:
        a = self.consumer("a", assignor="range")
        self.cluster.told(self.request("a", a.epoch, server_assignor="uniform"))
        assert self.cluster.group.describe().assignor_name == "uniform"

    def test_client_and_host_are_updated(self) -> None:
        """
        A member that continues elsewhere is described with its new client id and host.
        """
        a = self.consumer("a")
        for client_id, host in (("client", "/127.0.0.2"), ("other", "/127.0.0.2")):
            client = self.cluster.client()._replace(client_id=client_id, host=host)
            self.cluster.group.heartbeat(self.request("a", a.epoch), client)
            [member] = self.cluster.group.describe().members
            assert (member.client_id, member.client_host) == (client_id, host)

    def test_describe_shows_partitions_yet_to_be_revoked(self) -> None:
        """
        They are shown as the member's own, beside its target.
        """
        self.consumer("a", revokes=False)
        self.consumer("b")
        self.cluster.told(self.request("a", 2))
        a, _ = self.cluster.group.describe().members
        assert [part.partitions for part in a.assignment.topic_partitions] == [[0, 1, 2, 3]]
        assert [part.partitions for part in a.target_assignment.topic_partitions] == [[0, 1]]
        assert [part.topic_name for part in a.target_assignment.topic_partitions] == ["t"]

    def test_empty_subscriptions_are_allowed(self) -> None:
        """
        The member is in the group, reads nothing and moves no partition.
        """
        a = self.consumer("a")
        self.consumer("b", topics=[])
        assert (self.epoch, self.cluster.group.state) == (2, "Stable")
        assert a.beat()


class StaticTests(GroupTestCase):
    def test_a_static_member_keeps_its_place(self) -> None:
        """
        A client with its instance id takes it over, and nothing else moves.
        """
        a = self.consumer("a", instance_id="i1")
        b = self.consumer("b", instance_id="i2")
        self.settled(a, b)
        epoch, owned = self.epoch, a.owned_by_topic()
        a.leave(-2)
        self.cluster.clock.advance(40)
        b.beat()
        back = self.consumer("c", instance_id="i1")
        assert (back.owned_by_topic(), self.epoch, b.beat() is not None) == (owned, epoch, True)
        assert {member.member_id for member in self.cluster.group.describe().members} == {"b", "c"}

    def test_a_static_member_that_does_not_return_expires(self) -> None:
        a = self.consumer("a", instance_id="i1")
        a.leave(-2)
        self.cluster.clock.advance(45)
        assert self.cluster.group.is_empty

    def test_a_successor_has_its_own_session(self) -> None:
        a = self.consumer("a", instance_id="i1")
        a.leave(-2)
        self.cluster.clock.advance(44)
        self.consumer("c", instance_id="i1")
        self.cluster.clock.advance(44)
        assert not self.cluster.group.is_empty

    def test_an_instance_id_belongs_to_one_member(self) -> None:
        """
        It is free when the member has left.
        """
        self.consumer("a", instance_id="i1")
        self.assert_refused(ErrorCode.UNRELEASED_INSTANCE_ID, self.joining("b", instance_id="i1"))

    def test_a_static_member_repeats_a_lost_join(self) -> None:
        self.consumer("a", instance_id="i1")
        assert self.cluster.told(self.joining("a", instance_id="i1")).member_epoch == 2

    def test_a_replaced_member_is_fenced(self) -> None:
        """
        All its requests are refused.
        """
        a = self.consumer("a", instance_id="i1")
        a.leave(-2)
        self.consumer("b", instance_id="i1")
        for epoch in (2, -1, -2):
            self.assert_refused(ErrorCode.FENCED_INSTANCE_ID, self.request("a", epoch, instance_id="i1"))
        self.assert_refused(ErrorCode.UNKNOWN_MEMBER_ID, self.request("a", 2))

    def test_unknown_instance_ids_are_refused(self) -> None:
        for epoch in (1, -1, -2):
            self.assert_refused(ErrorCode.UNKNOWN_MEMBER_ID, self.request("a", epoch, instance_id="i1"))

    def test_a_static_member_that_leaves_has_revoked(self) -> None:
        """
        It owns nothing that it had to revoke.
        """
        a = self.consumer("a", instance_id="i1", revokes=False)
        b = self.consumer("b", revokes=False)
        a.beat()
        a.leave(-2)
        b.beat()
        assert b.owned_by_topic() == {"t": [2, 3]}
        self.cluster.clock.advance(44)
        b.beat()
        back = self.consumer("c", instance_id="i1")
        assert back.owned_by_topic() == {"t": [0, 1]}

    def test_an_empty_group_keeps_no_old_view(self) -> None:
        """
        A reference to it would keep deleted topics alive.
        """
        view = self.cluster.view
        self.cluster.view = Watched(**{each.name: getattr(view, each.name) for each in fields(view)})
        before = ref(self.cluster.view)
        self.consumer("a").leave()
        self.cluster.view = view
        assert before() is None

    def test_an_absent_member_after_a_restart(self) -> None:
        """
        It has nothing to revoke, so only its session counts.
        """
        a = self.consumer("a", instance_id="i1", revokes=False, rebalance_timeout_ms=20_000)
        self.consumer("b", revokes=False)
        a.beat()
        a.leave(-2)
        self.cluster.reload()
        self.cluster.clock.advance(44)
        assert {member.member_id for member in self.cluster.group.describe().members} == {"a", "b"}

    def test_a_static_member_can_leave_permanently(self) -> None:
        a = self.consumer("a", instance_id="i1")
        a.leave(-1)
        assert self.cluster.group.is_empty
        self.assert_refused(ErrorCode.UNKNOWN_MEMBER_ID, self.request("a", -1, instance_id="i1"))


class DeadlineTests(GroupTestCase):
    def test_silent_members_expire(self) -> None:
        """
        A heartbeat renews the session.
        """
        a, b = self.consumer("a"), self.consumer("b")
        self.cluster.clock.advance(44)
        b.beat()
        self.cluster.clock.advance(1)
        assert [member.member_id for member in self.cluster.group.describe().members] == ["b"]
        self.assert_refused(ErrorCode.UNKNOWN_MEMBER_ID, self.request("a", a.epoch))

    def test_session_and_heartbeat_interval_are_group_configs(self) -> None:
        self.cluster.config = GroupConfig(session_timeout_ms=10_000, heartbeat_interval_ms=3_000)
        assert self.cluster.told(self.joining("a")).heartbeat_interval_ms == 3000
        self.cluster.clock.advance(10)
        assert self.cluster.group.is_empty

    def test_members_that_do_not_revoke_are_removed(self) -> None:
        """
        Heartbeats do not help after the rebalance timeout.
        """
        a = self.consumer("a", revokes=False, rebalance_timeout_ms=20_000)
        b = self.consumer("b")
        for second in range(21):
            assert a.fenced == 0, second
            a.beat()
            b.beat()
            self.cluster.clock.advance(1)
        b.beat()
        assert b.owned_by_topic() == {"t": [0, 1, 2, 3]}

    def test_a_revocation_in_time_ends_the_deadline(self) -> None:
        a = self.consumer("a", rebalance_timeout_ms=20_000)
        b = self.consumer("b")
        for _ in range(30):
            a.beat()
            b.beat()
            self.cluster.clock.advance(1)
        assert (a.fenced, b.fenced) == (0, 0)

    def test_fenced_heartbeats_do_not_renew_the_session(self) -> None:
        self.consumer("a")
        for _ in range(9):
            self.cluster.clock.advance(5)
            if not self.cluster.group.is_empty:
                self.assert_refused(ErrorCode.FENCED_MEMBER_EPOCH, self.request("a", 9))
        assert self.cluster.group.is_empty

    def test_a_stopped_group_does_nothing(self) -> None:
        """
        It is coordinated elsewhere.
        """
        self.consumer("a")
        written = len(self.cluster.log.rows)
        self.cluster.group.stop()
        self.cluster.clock.advance(100)
        assert len(self.cluster.log.rows) == written
        assert self.cluster.clock.getDelayedCalls() == []

    def test_removed_and_replaced_members_leave_no_timers(self) -> None:
        a = self.consumer("a", revokes=False, instance_id="i1")
        b = self.consumer("b")
        a.beat()
        a.leave(-2)
        c = self.consumer("c", instance_id="i1")
        assert len(self.cluster.clock.getDelayedCalls()) == 2
        b.leave()
        c.leave()
        assert self.cluster.clock.getDelayedCalls() == []

    def test_a_shorter_session_expires_sooner(self) -> None:
        a = self.consumer("a")
        self.cluster.config = replace(self.config, session_timeout_ms=10_000)
        a.beat()
        self.cluster.clock.advance(10)
        assert self.cluster.group.is_empty

    def test_an_unwritable_removal_is_retried(self) -> None:
        self.consumer("a")
        self.cluster.log.refusal = LOST
        self.cluster.clock.advance(45)
        assert not self.cluster.group.is_empty
        self.cluster.log.refusal = None
        self.cluster.clock.advance(1)
        assert self.cluster.group.is_empty

    def test_a_rejoining_member_has_a_session(self) -> None:
        """
        Its predecessor of the same id may just have expired.
        """
        self.consumer("a")
        self.cluster.clock.advance(45)
        self.consumer("a")
        self.cluster.clock.advance(44)
        assert not self.cluster.group.is_empty


class TopicTests(GroupTestCase):
    def test_new_partitions_are_assigned_with_the_next_heartbeat(self) -> None:
        a = self.consumer("a")
        self.cluster.grow_topic("t", 1)
        a.beat()
        assert (a.owned_by_topic(), self.epoch) == ({"t": [0, 1, 2, 3, 4]}, 3)

    def test_a_created_topic_is_assigned(self) -> None:
        """
        A member may have subscribed to it before.
        """
        a = self.consumer("a", topics=["u"])
        assert a.owned_by_topic() == {}
        self.cluster.add_topic("u", 2)
        a.beat()
        assert a.owned_by_topic() == {"u": [0, 1]}

    def test_partitions_of_a_deleted_topic_are_revoked(self) -> None:
        """
        They are in no response.
        """
        a = self.consumer("a")
        self.cluster.drop_topic("t")
        a.beat()
        a.beat()
        assert (a.owned, self.cluster.group.state) == (set(), "Stable")
        assert self.cluster.group.describe().members[0].assignment.topic_partitions == []

    def test_a_recreated_topic_is_another_topic(self) -> None:
        a = self.consumer("a")
        self.cluster.drop_topic("t")
        made = self.cluster.add_topic("t", 4)
        a.beat()
        a.beat()
        assert {owned_id for owned_id, _ in a.owned} == {made.id}

    def test_other_topics_begin_no_epoch(self) -> None:
        a = self.consumer("a")
        self.cluster.add_topic("u", 2)
        a.beat()
        assert self.epoch == 2

    def test_subscribed_topics_are_known(self) -> None:
        """
        Members subscribe by name or expression.
        """
        self.cluster.add_topic("orders", 1)
        self.consumer("a")
        self.consumer("b", topics=None, pattern="o.*")
        group = self.cluster.group
        assert [group.reads(name) for name in ("t", "orders", "u")] == [True, True, False]
        self.cluster.told(self.request("b", -1))
        assert not group.reads("orders")


class PatternTests(GroupTestCase):
    def test_an_expression_matches_whole_names(self) -> None:
        self.cluster.add_topic("a-1", 1)
        self.cluster.add_topic("ba-1", 1)
        a = self.consumer("a", topics=None, pattern="a-[0-9]")
        assert a.owned_by_topic() == {"a-1": [0]}

    def test_names_and_expressions_may_be_combined(self) -> None:
        self.cluster.add_topic("a-1", 1)
        a = self.consumer("a", pattern="a-.*")
        assert a.owned_by_topic() == {"a-1": [0], "t": [0, 1, 2, 3]}

    def test_a_new_matching_topic_is_assigned(self) -> None:
        """
        The member's next heartbeat has it.
        """
        a = self.consumer("a", topics=None, pattern="a-.*")
        self.cluster.add_topic("a-1", 1)
        self.cluster.add_topic("b-1", 1)
        a.beat()
        assert a.owned_by_topic() == {"a-1": [0]}
        self.cluster.drop_topic("a-1")
        a.beat()
        a.beat()
        assert a.owned == set()

    def test_an_invalid_expression_is_refused(self) -> None:
        """
        The reason is given, and nothing changes.
        """
        request = self.joining("a", subscribed_topic_names=None, subscribed_topic_regex="a(")
        with pytest.raises(KafkaError, match=r"missing \)") as raised:
            self.cluster.ask(request)
        assert raised.value.code is ErrorCode.INVALID_REGULAR_EXPRESSION
        assert self.cluster.group.is_empty
        assert self.cluster.log.rows == []

    def test_expressions_match_permitted_topics_only(self) -> None:
        """
        The member must be allowed to describe a topic; changed permissions apply after a while.
        """
        self.cluster.add_topic("a-1", 1)
        self.cluster.denied = {"a-1"}
        a = self.consumer("a", topics=None, pattern="a-.*")
        assert a.owned_by_topic() == {}
        self.cluster.denied = set()
        for _ in range(20):
            self.cluster.clock.advance(30)
            a.beat()
        assert a.owned_by_topic() == {"a-1": [0]}

    def test_an_expression_can_be_changed(self) -> None:
        """
        An expression without subscribers is deleted.
        """
        self.cluster.add_topic("a-1", 1)
        self.cluster.add_topic("b-1", 1)
        a = self.consumer("a", topics=None, pattern="a-.*")
        a.pattern, a.sends_all = "b-.*", True
        a.beat()
        a.beat()
        assert a.owned_by_topic() == {"b-1": [0]}
        assert not self.cluster.group.reads("a-1")
        a.pattern, a.sends_all = "", True
        a.beat()
        a.beat()
        assert (a.owned_by_topic(), self.cluster.group.reads("b-1")) == ({}, False)

    def test_old_versions_keep_the_expression(self) -> None:
        """
        They have no field for it.
        """
        self.cluster.add_topic("a-1", 1)
        a = self.consumer("a", topics=None, pattern="a-.*")
        self.cluster.told(self.request("a", a.epoch))
        assert self.cluster.group.describe().members[0].subscribed_topic_regex == "a-.*"


class IntervalTests(GroupTestCase):
    config = GroupConfig(assignment_interval_ms=1000)

    def test_targets_are_made_once_in_an_interval(self) -> None:
        """
        A member that joins meanwhile is in the group, and waits.
        """
        a = self.consumer("a")
        self.cluster.clock.advance(0.5)
        b = self.consumer("b")
        assert (b.epoch, self.epoch, self.cluster.group.state) == (2, 3, "Assigning")
        a.beat()
        assert a.owned_by_topic() == {"t": [0, 1, 2, 3]}
        self.cluster.clock.advance(0.5)
        self.settled(a, b)
        assert (a.owned_by_topic(), b.owned_by_topic(), b.epoch) == ({"t": [0, 1]}, {"t": [2, 3]}, 3)

    def test_a_clock_set_back_delays_no_target(self) -> None:
        a = self.consumer("a")
        self.cluster.clock.rightNow -= 1000
        b = self.consumer("b")
        assert b.epoch == 3
        assert a.epoch == 2


class WriteTests(GroupTestCase):
    def test_a_refused_write_leaves_no_trace(self) -> None:
        self.cluster.log.refusal = LOST
        self.assert_refused(ErrorCode.NOT_COORDINATOR, self.joining("a"))
        assert self.cluster.group.is_empty
        self.cluster.log.refusal = None
        assert self.cluster.told(self.joining("a")).member_epoch == 2

    def test_a_new_view_is_handled_after_a_refused_write(self) -> None:
        a = self.consumer("a")
        self.cluster.grow_topic("t", 1)
        self.cluster.log.refusal = LOST
        a.beat()
        self.cluster.log.refusal = None
        a.beat()
        assert a.owned_by_topic() == {"t": [0, 1, 2, 3, 4]}

    def test_responses_wait_for_the_commit(self) -> None:
        """
        Later responses wait too.
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

    def test_a_failed_write_is_undone(self) -> None:
        """
        Everything after it is undone as well; members keep their sessions.
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

    def test_a_stop_refuses_waiting_members(self) -> None:
        """
        The group is coordinated elsewhere.
        """
        self.cluster.log.slow = True
        answer = self.cluster.ask(self.joining("a"))
        self.cluster.group.stop()
        assert isinstance(answer, Deferred)
        assert self.failureResultOf(answer, KafkaError).value.code is ErrorCode.NOT_COORDINATOR
        self.cluster.log.settle()

    def test_a_heartbeat_without_changes_writes_nothing(self) -> None:
        a = self.consumer("a")
        written = len(self.cluster.log.rows)
        a.beat()
        assert len(self.cluster.log.rows) == written


class LoadTests(GroupTestCase):
    def test_members_continue_after_a_restart(self) -> None:
        """
        No epoch begins, nothing is written, and no partition moves.
        """
        self.cluster.add_topic("a-1", 2)
        consumers = [
            self.consumer("a"),
            self.consumer("b", instance_id="i"),
            self.consumer("c", topics=None, pattern="a-.*"),
        ]
        self.settled(*consumers)
        before, written = [consumer.owned_by_topic() for consumer in consumers], len(self.cluster.log.rows)
        self.cluster.reload()
        self.settled(*consumers)
        assert [consumer.owned_by_topic() for consumer in consumers] == before
        assert len(self.cluster.log.rows) == written
        assert [consumer.fenced for consumer in consumers] == [0, 0, 0]

    def test_sessions_restart_with_the_gateway(self) -> None:
        """
        Members have one whole session.
        """
        self.consumer("a")
        self.cluster.clock.advance(44)
        self.cluster.reload()
        self.cluster.clock.advance(44)
        assert not self.cluster.group.is_empty
        self.cluster.clock.advance(1)
        assert self.cluster.group.is_empty

    def test_revocations_restart_with_the_gateway(self) -> None:
        """
        A member has the whole time to revoke again.
        """
        a = self.consumer("a", revokes=False, rebalance_timeout_ms=20_000)
        self.consumer("b")
        a.beat()
        self.cluster.reload()
        for _ in range(20):
            a.beat()
            self.cluster.clock.advance(1)
        assert "a" not in {member.member_id for member in self.cluster.group.describe().members}

    def test_topic_changes_during_a_stop_are_noticed(self) -> None:
        a = self.consumer("a", topics=None, pattern="t|u")
        self.cluster.grow_topic("t", 1)
        self.cluster.add_topic("u", 1)
        self.cluster.reload()
        a.beat()
        assert a.owned_by_topic() == {"t": [0, 1, 2, 3, 4], "u": [0]}

    def test_an_empty_group_has_only_epochs(self) -> None:
        """
        Their tombstones delete it.
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
        self.settled(self.a, self.b)  # both in epoch 3; a owns 0 and 1 since 2, b owns 2 and 3 since 3

    def commit(self, member_id: str, epoch: int, index: int, *, transactional: bool = False) -> ErrorCode:
        try:
            check = self.cluster.group.check_commit(member_id, None, epoch, transactional=transactional)
            if check:
                check(self.topic.id, index)
        except KafkaError as error:
            return error.code
        return ErrorCode.NONE

    def test_members_commit_in_their_epoch(self) -> None:
        assert self.commit("a", 3, 0) is ErrorCode.NONE

    def test_stale_epochs_commit_what_they_still_own(self) -> None:
        """
        The member must have owned the partition since that epoch.
        """
        assert self.commit("a", 2, 1) is ErrorCode.NONE
        assert self.commit("a", 2, 2) is ErrorCode.STALE_MEMBER_EPOCH
        assert self.commit("a", 1, 1) is ErrorCode.STALE_MEMBER_EPOCH
        assert self.commit("b", 2, 2) is ErrorCode.STALE_MEMBER_EPOCH
        assert self.commit("b", 4, 2) is ErrorCode.STALE_MEMBER_EPOCH

    def test_partitions_to_revoke_may_be_committed(self) -> None:
        """
        The member may not commit them once it has revoked them.
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

    def test_other_clients_commit_to_empty_groups_only(self) -> None:
        assert self.commit("x", 3, 0) is ErrorCode.UNKNOWN_MEMBER_ID
        assert self.commit("", -1, 0) is ErrorCode.UNKNOWN_MEMBER_ID
        assert self.commit("", -1, 0, transactional=True) is ErrorCode.NONE
        self.a.leave()
        self.b.leave()
        assert self.commit("", -1, 0) is ErrorCode.NONE

    def test_a_successor_may_commit_at_once(self) -> None:
        c = self.consumer("c", instance_id="i", topics=["t"])
        self.settled(self.a, self.b, c)
        c.leave(-2)
        d = self.consumer("d", instance_id="i")
        [(_, index)] = d.owned
        assert self.commit("d", 0, index) is ErrorCode.NONE

    def test_members_fetch_in_their_epoch(self) -> None:
        """
        Other clients may always fetch.
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
