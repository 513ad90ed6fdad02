"""
Static members of a classic group (KIP-345).
"""

from typing import Any

from kgateway.groups.classic.requests import JoinResult, LeavingMember
from kgateway.wire.errors import ErrorCode, KafkaError
from tests.groups.classic.clients import REBALANCE_MS, SESSION_MS, GroupTestCase, later, subscription


class StaticTestCase(GroupTestCase):
    def group_of(self, *instances: str | None, **more: Any) -> list[JoinResult]:
        """
        A stable group of these members; the first one leads.
        """
        waiting = [self.join(instance_id=instance, **more) for instance in instances]
        self.wait_for_newcomers()
        joined = [self.successResultOf(each) for each in waiting]
        self.sync_all(joined)
        return joined

    def back(self, instance_id: str, **more: Any) -> JoinResult:
        """
        Restart the member, which gets its generation at once.
        """
        joined: JoinResult = self.successResultOf(self.join(instance_id=instance_id, **more))
        return joined


class ComesBackTests(StaticTestCase):
    def test_a_returning_member_causes_no_rebalance(self) -> None:
        """
        It has a new member id and the same assignment.
        """
        leader, member = self.group_of("a", "b")
        again = self.back("b")
        self.assertNotEqual(member.member_id, again.member_id)
        self.assertEqual((1, "Stable"), (again.generation, self.group.state))
        self.assertEqual(member.member_id.encode(), self.successResultOf(self.sync(again)).assignment)
        self.beat(leader)

    def test_the_session_restarts_on_return(self) -> None:
        """
        It has the new timeout.
        """
        leader, _ = self.group_of("a", "b")
        self.advance(SESSION_MS / 1000 - 5, [leader])
        again = self.back("b", session_timeout_ms=10_000)
        self.advance(9, [leader])
        self.beat(again, "b")
        self.advance(9, [leader])
        self.assertEqual(2, len(self.group.members))
        self.advance(5, [leader])
        self.assertEqual(1, len(self.group.members))

    def test_the_old_member_id_is_fenced(self) -> None:
        """
        All its requests are fenced; an unknown instance id is unknown.
        """
        _, old = self.group_of("a", "b")
        new = self.back("b")
        fenced, unknown = ErrorCode.FENCED_INSTANCE_ID, ErrorCode.UNKNOWN_MEMBER_ID
        for code, instance in ((fenced, "b"), (unknown, "c"), (unknown, None)):
            commit = later(lambda i=instance: self.group.check_commit(old.member_id, i, 1, transactional=False))
            self.assert_refused(code, commit)
            self.assert_refused(code, later(self.beat, old, instance))
            self.assert_refused(code, self.sync(old, instance_id=instance))
            self.assert_refused(code, self.join(old.member_id, instance_id=instance))
            self.assertEqual([code], self.leave(LeavingMember(old.member_id, instance)))
        self.beat(new, "b")

    def test_waiting_requests_of_the_old_member_are_fenced(self) -> None:
        """
        They may wait for the next generation or the assignment.
        """
        one, two = self.group_of("a", "b")
        joining = self.join(one.member_id, instance_id="a")
        again = self.join(instance_id="a")
        self.assert_refused(ErrorCode.FENCED_INSTANCE_ID, joining)
        second = self.join(two.member_id, instance_id="b")
        joined = self.successResultOf(second)
        syncing = self.sync(joined)
        self.join(instance_id="b")
        self.assert_refused(ErrorCode.FENCED_INSTANCE_ID, syncing)
        self.assertEqual(2, self.successResultOf(again).generation)

    def test_a_returning_leader_leads(self) -> None:
        """
        It gets the list of members, and is told to skip the assignment.
        """
        self.group_of("a", "b")
        again = self.back("a", can_skip_assignment=True)
        self.assertEqual((again.member_id, True), (again.leader, again.skip_assignment))
        self.assertEqual(2, len(again.members))
        (member,) = (each for each in self.group.members if each.instance_id == "b")
        follower = self.back("b", can_skip_assignment=True)
        self.assertEqual((again.member_id, False, ()), (follower.leader, follower.skip_assignment, follower.members))
        self.assert_raises(ErrorCode.FENCED_INSTANCE_ID, self.group.heartbeat, member.id, "b", 1)

    def test_a_returning_leader_of_an_old_version(self) -> None:
        """
        A client that cannot be told to skip the assignment sees its old id as the leader's.
        """
        leader, _ = self.group_of("a", "b")
        again = self.back("a")
        self.assertEqual((leader.member_id, ()), (again.leader, again.members))
        self.assertEqual(again.member_id, self.group.members.leader)

    def test_a_member_that_knows_its_id_is_treated_as_any_other(self) -> None:
        leader, member = self.group_of("a", "b")
        self.assertEqual(member, self.successResultOf(self.join(member.member_id, instance_id="b")))
        self.assertNoResult(self.join(leader.member_id, instance_id="a"))

    def test_user_data_may_change(self) -> None:
        """
        Only the topics in a consumer's metadata matter.
        """
        self.group_of("a", "b")
        self.back("b", protocols={"range": subscription("orders", user_data=b"new")})

    def test_other_topics_cause_a_rebalance(self) -> None:
        leader, _ = self.group_of("a", "b")
        waiting = self.join(instance_id="b", protocols={"range": subscription("returns")})
        self.join(leader.member_id, instance_id="a")
        self.assertEqual(2, self.successResultOf(waiting).generation)

    def test_metadata_of_other_protocol_types_is_not_parsed(self) -> None:
        self.group_of("a", "b", protocol_type="connect", protocols={"compatible": b"one"})
        self.back("b", protocol_type="connect", protocols={"compatible": b"two"})

    def test_another_chosen_protocol_causes_a_rebalance(self) -> None:
        """
        This holds where the group would choose another one with the returned member.
        """
        leader, _ = self.group_of("a", "b", protocols={"range": b"", "sticky": b""})
        waiting = self.join(instance_id="b", protocols={"sticky": b""})
        self.assertNoResult(waiting)
        self.join(leader.member_id, instance_id="a", protocols={"range": b"", "sticky": b""})
        self.assertEqual("sticky", self.successResultOf(waiting).protocol)

    def test_a_return_before_the_assignment_causes_a_rebalance(self) -> None:
        """
        The leader may be about to assign to the old id.
        """
        waiting = [self.join(instance_id=instance) for instance in "ab"]
        self.wait_for_newcomers()
        leader, _ = (self.successResultOf(each) for each in waiting)
        back = self.join(instance_id="b")
        self.assert_refused(ErrorCode.REBALANCE_IN_PROGRESS, self.sync(leader))
        self.join(leader.member_id, instance_id="a")
        self.assertEqual(2, self.successResultOf(back).generation)

    def test_a_member_that_returns_while_others_join_has_joined(self) -> None:
        leader, _ = self.group_of("a", "b")
        waiting = self.join(leader.member_id, instance_id="a")
        self.assertNoResult(waiting)
        self.join(instance_id="b")
        self.assertEqual(2, len(self.successResultOf(waiting).members))


class StaysTests(StaticTestCase):
    def test_a_static_member_that_is_late_is_kept(self) -> None:
        one, two = self.group_of("a", "b", session_timeout_ms=300_000)
        waiting = self.join(one.member_id, instance_id="a")
        self.clock.advance(REBALANCE_MS / 1000)
        joined = self.successResultOf(waiting)
        self.assertEqual({one.member_id, two.member_id}, {each.member_id for each in joined.members})

    def test_a_late_static_leader_is_replaced(self) -> None:
        _, two = self.group_of("a", "b", session_timeout_ms=300_000)
        waiting = self.join(two.member_id, instance_id="b", protocols={"range": subscription("returns")})
        self.clock.advance(REBALANCE_MS / 1000)
        joined = self.successResultOf(waiting)
        self.assertEqual((two.member_id, 2), (joined.leader, len(joined.members)))

    def test_a_rebalance_that_nobody_joins_waits_for_sessions(self) -> None:
        """
        It ends when the sessions of the static members expire.
        """
        self.group_of("a", "b", session_timeout_ms=100_000)
        self.group.rebalance("a test")
        self.clock.advance(REBALANCE_MS / 1000)
        self.assertEqual(("PreparingRebalance", 2), (self.group.state, len(self.group.members)))
        self.clock.advance(100 - REBALANCE_MS / 1000)
        self.assertEqual("Empty", self.group.state)

    def test_a_late_join_starts_the_rebalance_timeout(self) -> None:
        one, _two = self.group_of("a", "b", session_timeout_ms=1_000_000)
        self.group.rebalance("a test")
        self.clock.advance(REBALANCE_MS / 1000)
        self.clock.advance(1)
        waiting = self.join(one.member_id, instance_id="a")
        self.clock.advance(REBALANCE_MS / 1000 - 2)
        self.assertNoResult(waiting)
        self.clock.advance(1)
        self.assertEqual(2, len(self.successResultOf(waiting).members))


class WrittenTests(StaticTestCase):
    def test_the_new_id_is_restored(self) -> None:
        self.group_of("a", "b")
        again = self.back("b")
        self.group = self.restarted()
        self.beat(again, "b")

    def test_a_restart_before_the_assignment_fences_nobody(self) -> None:
        """
        A member that came back is told to join again.
        """
        leader, _ = self.group_of("a", "b")
        waiting = [self.join(leader.member_id, instance_id="a"), self.join(instance_id="a"), self.join(instance_id="b")]
        again = [self.successResultOf(each) for each in waiting[1:]]
        earlier = {each.member_id for row in self.rows.written for each in row.value.members}  # type: ignore[union-attr]
        self.assertIn(leader.member_id, earlier)
        self.group = self.restarted()
        self.assert_refused(ErrorCode.FENCED_INSTANCE_ID, waiting[0])
        for joined, instance in zip(again, "ab", strict=True):
            self.assert_refused(ErrorCode.ILLEGAL_GENERATION, later(self.beat, joined, instance))
        self.assertEqual(again[0].member_id, self.group.members.leader)

    def test_the_leader_leads_after_such_a_restart(self) -> None:
        """
        It has its new id.
        """
        _, two = self.group_of("a", "b", session_timeout_ms=300_000)
        other = {"range": subscription("returns")}
        waiting = self.join(two.member_id, instance_id="b", protocols=other)
        self.clock.advance(REBALANCE_MS / 1000)
        leader = self.successResultOf(waiting)
        self.sync(leader)
        self.assertEqual(two.member_id, self.restarted().members.leader)
        self.group.rebalance("a test")
        self.join(instance_id="b", protocols=other)
        member = self.group.members.static("b")
        assert member is not None
        self.assertNotEqual(two.member_id, member.id)
        self.assertEqual(member.id, self.restarted().members.leader)

    def test_a_member_that_returns_before_its_sync_has_to_sync(self) -> None:
        waiting = [self.join(instance_id=instance) for instance in "ab"]
        self.wait_for_newcomers()
        leader, _ = (self.successResultOf(each) for each in waiting)
        self.sync(leader)
        again = self.back("b")
        self.sync(again)
        self.advance(REBALANCE_MS / 1000, [leader, again])
        self.assertEqual("Stable", self.group.state)

    def test_a_returned_member_that_does_not_sync_is_removed(self) -> None:
        waiting = [self.join(instance_id=instance) for instance in "ab"]
        self.wait_for_newcomers()
        leader, _ = (self.successResultOf(each) for each in waiting)
        self.sync(leader)
        again = self.back("b")
        self.advance(REBALANCE_MS / 1000, [leader, again])
        self.assertNotIn(again.member_id, self.group.members)

    def test_a_removed_member_that_returns_has_to_sync(self) -> None:
        """
        It is a new member then.
        """
        leader, _ = self.group_of("a", "b")
        self.leave(LeavingMember("", "b"))
        waiting = self.join(instance_id="b")
        self.join(leader.member_id, instance_id="a")
        joined = self.successResultOf(waiting)
        self.group = self.restarted()
        self.assert_refused(ErrorCode.ILLEGAL_GENERATION, later(self.beat, joined, "b"))

    def test_the_response_waits_until_the_new_id_is_committed(self) -> None:
        self.group_of("a", "b")
        self.rows.waits = True
        waiting = self.join(instance_id="b")
        self.assertNoResult(waiting)
        self.rows.settle()
        self.successResultOf(waiting)

    def test_the_session_begins_with_the_response(self) -> None:
        """
        While its id is written the member cannot send heartbeats.
        """
        leader, _ = self.group_of("a", "b")
        self.rows.waits = True
        waiting = self.join(instance_id="b")
        self.advance(SESSION_MS / 1000 + 1, [leader])
        self.rows.settle()
        self.successResultOf(waiting)
        self.advance(SESSION_MS / 1000 - 5, [leader])
        self.assertEqual(2, len(self.group.members))
        self.advance(5, [leader])
        self.assertEqual(1, len(self.group.members))

    def test_the_old_id_is_kept_if_the_new_one_is_unwritable(self) -> None:
        """
        The member keeps all it had.
        """
        leader, member = self.group_of(
            "a", "b", protocols={"range": subscription("orders"), "own": subscription("orders")}
        )
        self.rows.refuses = KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        for instance in ("a", "b"):
            self.assert_refused(
                ErrorCode.COORDINATOR_NOT_AVAILABLE,
                self.join(instance_id=instance, protocols={"range": subscription("orders")}, session_timeout_ms=9_000),
            )
        self.beat(leader, "a")
        self.beat(member, "b")
        self.assertEqual(leader.member_id, self.group.members.leader)
        self.assertEqual([SESSION_MS] * 2, [each.session_timeout_ms for each in self.group.members])
        self.assertEqual(member.member_id.encode(), self.successResultOf(self.sync(member)).assignment)
        self.assertEqual([2, 2], [len(each.protocols) for each in self.group.members])

    def test_the_old_id_is_kept_if_the_write_fails_later(self) -> None:
        _, member = self.group_of("a", "b")
        self.rows.waits = True
        waiting = self.join(instance_id="b")
        self.rows.settle(KafkaError(ErrorCode.NOT_COORDINATOR))
        self.assert_refused(ErrorCode.NOT_COORDINATOR, waiting)
        self.assertIn(member.member_id, self.group.members)
        self.advance(SESSION_MS / 1000 + 1)
        self.assertEqual("Empty", self.group.state)
        self.assertEqual([], self.clock.getDelayedCalls())

    def test_a_rebalance_overtakes_the_write_of_the_new_id(self) -> None:
        """
        The member is answered with the next generation.
        """
        leader, _ = self.group_of("a", "b")
        for error in (None, KafkaError(ErrorCode.NOT_COORDINATOR)):
            self.rows.waits = True
            waiting = self.join(instance_id="b")
            first = self.join(leader.member_id, instance_id="a")
            self.rows.waits = False
            joined = [self.successResultOf(each) for each in (waiting, first)]
            self.rows.settle(error)
            self.sync_all(joined)
            leader = joined[1]
            self.assertEqual("Stable", self.group.state)
        self.assertEqual(3, leader.generation)
