"""
Static members of a classic group (KIP-345).
"""

from typing import Any

from kgateway.groups.classic.exchange import Joined, Leave
from kgateway.wire.errors import ErrorCode, KafkaError
from tests.groups.classic.clients import REBALANCE_MS, SESSION_MS, GroupTestCase, later, subscription


class StaticTestCase(GroupTestCase):
    def group_of(self, *instances: str | None, **more: Any) -> list[Joined]:
        """
        A stable group of these members; the first one leads.
        """
        waiting = [self.join(instance_id=instance, **more) for instance in instances]
        self.wait_for_newcomers()
        joined = [self.successResultOf(each) for each in waiting]
        self.share_out(joined)
        return joined

    def back(self, instance_id: str, **more: Any) -> Joined:
        """
        The member has started anew, and is told of its generation at once.
        """
        joined: Joined = self.successResultOf(self.join(instance_id=instance_id, **more))
        return joined


class ComesBackTests(StaticTestCase):
    def test_no_rebalance(self) -> None:
        """
        A static member that comes back has another id and the same assignment, and nobody joins again.
        """
        leader, member = self.group_of("a", "b")
        again = self.back("b")
        self.assertNotEqual(member.member_id, again.member_id)
        self.assertEqual((1, "Stable"), (again.generation, self.group.state))
        self.assertEqual(member.member_id.encode(), self.successResultOf(self.sync(again)).assignment)
        self.beat(leader)

    def test_session(self) -> None:
        """
        The session of the one that came back begins anew, with its own timeout.
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

    def test_fenced(self) -> None:
        """
        Who has the old id is fenced in all it asks; one who names an unknown instance is a stranger.
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
            self.assertEqual([code], self.leave(Leave(old.member_id, instance)))
        self.beat(new, "b")

    def test_fenced_while_it_waits(self) -> None:
        """
        The old one is told so where it waits for the next generation or its assignment.
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

    def test_leader(self) -> None:
        """
        A leader that comes back leads, and is told of all members and not to assign.
        """
        self.group_of("a", "b")
        again = self.back("a", can_skip_assignment=True)
        self.assertEqual((again.member_id, True), (again.leader, again.skip_assignment))
        self.assertEqual(2, len(again.members))
        (member,) = (each for each in self.group.members if each.instance_id == "b")
        follower = self.back("b", can_skip_assignment=True)
        self.assertEqual((again.member_id, False, ()), (follower.leader, follower.skip_assignment, follower.members))
        self.assert_raises(ErrorCode.FENCED_INSTANCE_ID, self.group.heartbeat, member.id, "b", 1)

    def test_old_leader(self) -> None:
        """
        A leader that comes back and cannot be told not to assign is told the leader's old id.
        """
        leader, _ = self.group_of("a", "b")
        again = self.back("a")
        self.assertEqual((leader.member_id, ()), (again.leader, again.members))
        self.assertEqual(again.member_id, self.group.members.leader)

    def test_knows_its_id(self) -> None:
        """
        A static member that still knows its id is treated as any other.
        """
        leader, member = self.group_of("a", "b")
        self.assertEqual(member, self.successResultOf(self.join(member.member_id, instance_id="b")))
        self.assertNoResult(self.join(leader.member_id, instance_id="a"))

    def test_metadata_of_no_importance(self) -> None:
        """
        What else a consumer says to its leader may have changed.
        """
        self.group_of("a", "b")
        self.back("b", protocols={"range": subscription("orders", user_data=b"new")})

    def test_other_topics(self) -> None:
        """
        A member that comes back for other topics needs another assignment, so all join.
        """
        leader, _ = self.group_of("a", "b")
        waiting = self.join(instance_id="b", protocols={"range": subscription("returns")})
        self.join(leader.member_id, instance_id="a")
        self.assertEqual(2, self.successResultOf(waiting).generation)

    def test_other_kind(self) -> None:
        """
        What members that are not consumers say is not looked into.
        """
        self.group_of("a", "b", protocol_type="connect", protocols={"compatible": b"one"})
        self.back("b", protocol_type="connect", protocols={"compatible": b"two"})

    def test_other_protocol(self) -> None:
        """
        A member with which the group would choose another protocol makes all join.
        """
        leader, _ = self.group_of("a", "b", protocols={"range": b"", "sticky": b""})
        waiting = self.join(instance_id="b", protocols={"sticky": b""})
        self.assertNoResult(waiting)
        self.join(leader.member_id, instance_id="a", protocols={"range": b"", "sticky": b""})
        self.assertEqual("sticky", self.successResultOf(waiting).protocol)

    def test_before_the_leader_has_assigned(self) -> None:
        """
        The leader may be about to assign to the old id, so all join again.
        """
        waiting = [self.join(instance_id=instance) for instance in "ab"]
        self.wait_for_newcomers()
        leader, _ = (self.successResultOf(each) for each in waiting)
        back = self.join(instance_id="b")
        self.assert_refused(ErrorCode.REBALANCE_IN_PROGRESS, self.sync(leader))
        self.join(leader.member_id, instance_id="a")
        self.assertEqual(2, self.successResultOf(back).generation)

    def test_while_joining(self) -> None:
        """
        A member that comes back while members join is one of those that have joined.
        """
        leader, _ = self.group_of("a", "b")
        waiting = self.join(leader.member_id, instance_id="a")
        self.assertNoResult(waiting)
        self.join(instance_id="b")
        self.assertEqual(2, len(self.successResultOf(waiting).members))


class StaysTests(StaticTestCase):
    def test_not_joined_again(self) -> None:
        """
        A static member that does not join again in time is in the generation all the same.
        """
        one, two = self.group_of("a", "b", session_timeout_ms=300_000)
        waiting = self.join(one.member_id, instance_id="a")
        self.clock.advance(REBALANCE_MS / 1000)
        joined = self.successResultOf(waiting)
        self.assertEqual({one.member_id, two.member_id}, {each.member_id for each in joined.members})

    def test_leader_not_joined_again(self) -> None:
        """
        Where it was the leader, another one leads.
        """
        _, two = self.group_of("a", "b", session_timeout_ms=300_000)
        waiting = self.join(two.member_id, instance_id="b", protocols={"range": subscription("returns")})
        self.clock.advance(REBALANCE_MS / 1000)
        joined = self.successResultOf(waiting)
        self.assertEqual((two.member_id, 2), (joined.leader, len(joined.members)))

    def test_nobody_joined_again(self) -> None:
        """
        Where no member joins again, the rebalance waits until the sessions of static members end.
        """
        self.group_of("a", "b", session_timeout_ms=100_000)
        self.group.rebalance("a test")
        self.clock.advance(REBALANCE_MS / 1000)
        self.assertEqual(("PreparingRebalance", 2), (self.group.state, len(self.group.members)))
        self.clock.advance(100 - REBALANCE_MS / 1000)
        self.assertEqual("Empty", self.group.state)

    def test_in_the_end(self) -> None:
        """
        Where one joins after that, the next rebalance timeout counts.
        """
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
    def test_lasts(self) -> None:
        """
        The new id is known after a restart.
        """
        self.group_of("a", "b")
        again = self.back("b")
        self.group = self.restarted()
        self.beat(again, "b")

    def test_lasts_before_the_next_generation(self) -> None:
        """
        A restart before the leader has assigned fences off nobody: who came back is told to join again.
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

    def test_leader_before_the_next_generation(self) -> None:
        """
        After such a restart who led leads still, under its new id.
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

    def test_not_synced_yet(self) -> None:
        """
        A member that comes back before it has asked for its assignment has to, and the one before it need not.
        """
        waiting = [self.join(instance_id=instance) for instance in "ab"]
        self.wait_for_newcomers()
        leader, _ = (self.successResultOf(each) for each in waiting)
        self.sync(leader)
        again = self.back("b")
        self.sync(again)
        self.advance(REBALANCE_MS / 1000, [leader, again])
        self.assertEqual("Stable", self.group.state)

    def test_never_syncs(self) -> None:
        """
        If it does not, it is out.
        """
        waiting = [self.join(instance_id=instance) for instance in "ab"]
        self.wait_for_newcomers()
        leader, _ = (self.successResultOf(each) for each in waiting)
        self.sync(leader)
        again = self.back("b")
        self.advance(REBALANCE_MS / 1000, [leader, again])
        self.assertNotIn(again.member_id, self.group.members)

    def test_taken_out_and_back(self) -> None:
        """
        The same where it was taken out meanwhile, and is a new member.
        """
        leader, _ = self.group_of("a", "b")
        self.leave(Leave("", "b"))
        waiting = self.join(instance_id="b")
        self.join(leader.member_id, instance_id="a")
        joined = self.successResultOf(waiting)
        self.group = self.restarted()
        self.assert_refused(ErrorCode.ILLEGAL_GENERATION, later(self.beat, joined, "b"))

    def test_answer_waits(self) -> None:
        """
        The member is told of its generation when its new id is safe.
        """
        self.group_of("a", "b")
        self.rows.waits = True
        waiting = self.join(instance_id="b")
        self.assertNoResult(waiting)
        self.rows.settle()
        self.successResultOf(waiting)

    def test_session_begins_with_the_answer(self) -> None:
        """
        While its id is written the member cannot send heartbeats; its session begins with the answer.
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

    def test_not_written(self) -> None:
        """
        Where the new id cannot be written, the old one is the member's, with all it had.
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

    def test_not_written_later(self) -> None:
        """
        The same where that turns out later.
        """
        _, member = self.group_of("a", "b")
        self.rows.waits = True
        waiting = self.join(instance_id="b")
        self.rows.settle(KafkaError(ErrorCode.NOT_COORDINATOR))
        self.assert_refused(ErrorCode.NOT_COORDINATOR, waiting)
        self.assertIn(member.member_id, self.group.members)
        self.advance(SESSION_MS / 1000 + 1)
        self.assertEqual("Empty", self.group.state)
        self.assertEqual([], self.clock.getDelayedCalls())

    def test_overtaken(self) -> None:
        """
        Where members join again before it is written, the member is told of the next generation, not of this one.
        """
        leader, _ = self.group_of("a", "b")
        for error in (None, KafkaError(ErrorCode.NOT_COORDINATOR)):
            self.rows.waits = True
            waiting = self.join(instance_id="b")
            first = self.join(leader.member_id, instance_id="a")
            self.rows.waits = False
            joined = [self.successResultOf(each) for each in (waiting, first)]
            self.rows.settle(error)
            self.share_out(joined)
            leader = joined[1]
            self.assertEqual("Stable", self.group.state)
        self.assertEqual(3, leader.generation)
