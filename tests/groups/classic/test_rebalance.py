"""
How a classic group moves from one generation to the next.
"""

from twisted.logger import capturedLogs, formatEvent

from kgateway.wire.errors import ErrorCode
from tests.groups.classic.clients import REBALANCE_MS, SESSION_MS, GroupTestCase, later

REBALANCE_S = REBALANCE_MS / 1000


class BarrierTests(GroupTestCase):
    def test_a_generation_begins_when_all_have_joined(self) -> None:
        joined = self.stable(3)
        new = self.join()
        waiting = [self.join(each.member_id) for each in joined[1:]]
        self.assertNoResult(new)
        waiting.append(self.join(joined[0].member_id))
        self.assertEqual([2] * 4, [self.successResultOf(each).generation for each in [new, *waiting]])

    def test_only_the_leader_gets_the_members(self) -> None:
        one, two, three = self.members(3)
        self.assertEqual([one.member_id] * 3, [each.leader for each in (one, two, three)])
        self.assertEqual({each.member_id for each in (one, two, three)}, {each.member_id for each in one.members})
        self.assertEqual(((), ()), (two.members, three.members))

    def test_late_members_are_removed(self) -> None:
        """
        Heartbeats do not help after the rebalance timeout.
        """
        one, two = self.stable(2)
        again = self.join(one.member_id)
        self.advance(REBALANCE_S - 1, [two])
        self.assertNoResult(again)
        self.advance(1, [two])
        joined = self.successResultOf(again)
        self.assertEqual([one.member_id], [each.member_id for each in joined.members])
        self.assert_raises(ErrorCode.UNKNOWN_MEMBER_ID, self.beat, two)

    def test_the_longest_rebalance_timeout_counts(self) -> None:
        one, two = self.stable(2, rebalance_timeout_ms=10_000)
        again = self.join(two.member_id, rebalance_timeout_ms=30_000, protocols={"range": b"changed"})
        self.advance(29, [one])
        self.assertNoResult(again)
        self.advance(1, [one])
        self.successResultOf(again)

    def test_a_late_leader_is_replaced(self) -> None:
        """
        A member that has joined leads, even if the old leader is static and is kept.
        """
        one, two, three = self.stable(3)
        again = self.join(two.member_id, protocols={"range": b"changed"})
        self.advance(REBALANCE_S, [one, three])
        self.assertEqual(two.member_id, self.successResultOf(again).leader)

    def test_a_group_that_nobody_rejoins_is_empty(self) -> None:
        self.stable(2)
        self.group.rebalance("a test")
        self.clock.advance(REBALANCE_S)
        self.assertEqual(("Empty", 2), (self.group.state, self.group.generation))

    def test_expired_members_are_not_waited_for(self) -> None:
        one, _two = self.stable(2, rebalance_timeout_ms=300_000)
        again = self.join(one.member_id)
        self.clock.advance(SESSION_MS / 1000)
        self.assertEqual(1, len(self.successResultOf(again).members))

    def test_leaving_members_are_not_waited_for(self) -> None:
        one, two = self.stable(2)
        again = self.join(one.member_id)
        self.leave(two.member_id)
        self.assertEqual(1, len(self.successResultOf(again).members))

    def test_the_log_has_the_members_of_each_generation(self) -> None:
        """
        One member is counted in the singular, and without members there is no protocol.
        """
        one, two = self.stable(2)
        with capturedLogs() as logged:
            self.leave(two.member_id)
            self.successResultOf(self.join(one.member_id))
            self.leave(one.member_id)
        lines = [formatEvent(event) for event in logged]
        self.assertEqual(
            [
                "group g: preparing to rebalance generation 1: 1 member left",
                "group g: generation 2 has 1 member and uses the protocol range",
            ],
            lines[1:3],
        )
        self.assertEqual("group g: generation 3 has 0 members", lines[-1])

    def test_a_waiting_join_keeps_the_session_alive(self) -> None:
        """
        The member need send no heartbeats.
        """
        one, two = self.stable(2, rebalance_timeout_ms=300_000)
        again = self.join(one.member_id)
        self.advance(200, [two])
        self.assertNoResult(again)
        self.join(two.member_id)
        self.assertEqual(2, len(self.successResultOf(again).members))
        self.clock.advance(SESSION_MS / 1000 - 1)
        self.assertEqual(2, len(self.group.members))

    def test_a_rebalance_can_be_requested(self) -> None:
        """
        In an empty group it does nothing.
        """
        self.group.rebalance("a test")
        self.assertEqual("Empty", self.group.state)
        (one,) = self.stable(1)
        self.group.rebalance("a test")
        self.assert_raises(ErrorCode.REBALANCE_IN_PROGRESS, self.beat, one)


class SyncTests(GroupTestCase):
    def test_followers_wait_for_the_leader(self) -> None:
        """
        Each gets what the leader assigned to it.
        """
        leader, follower = self.members(2)
        waiting = self.sync(follower)
        self.assertNoResult(waiting)
        own = self.sync(leader, {leader.member_id: b"for one", follower.member_id: b"for two"})
        self.assertEqual(b"for one", self.successResultOf(own).assignment)
        synced = self.successResultOf(waiting)
        self.assertEqual((b"for two", "consumer", "range"), (synced.assignment, synced.protocol_type, synced.protocol))
        self.assertEqual("Stable", self.group.state)

    def test_a_stable_group_answers_syncs_at_once(self) -> None:
        """
        A member may ask repeatedly.
        """
        leader, follower = self.members(2)
        self.sync(leader, {follower.member_id: b"for two"})
        for _ in range(2):
            self.assertEqual(b"for two", self.successResultOf(self.sync(follower)).assignment)

    def test_assignments_to_unknown_members_are_ignored(self) -> None:
        """
        A member that the leader forgot gets nothing.
        """
        leader, follower = self.members(2)
        self.sync(leader, {"stranger": b"x", leader.member_id: b"for one"})
        self.assertEqual(b"", self.successResultOf(self.sync(follower)).assignment)
        value = self.rows.written[-1].value
        self.assertEqual([b"for one", b""], [each.assignment for each in value.members])  # type: ignore[union-attr]

    def test_only_the_leader_assigns(self) -> None:
        leader, follower = self.members(2)
        self.assertNoResult(self.sync(follower, {follower.member_id: b"mine"}))
        self.sync(leader, {})
        self.assertEqual(b"", self.successResultOf(self.sync(follower)).assignment)

    def test_syncs_are_fenced(self) -> None:
        """
        Unknown members and other generations are refused.
        """
        (one,) = self.members(1)
        self.assert_refused(ErrorCode.UNKNOWN_MEMBER_ID, self.sync(one, member_id="stranger"))
        for generation in (0, 2, -1):
            self.assert_refused(ErrorCode.ILLEGAL_GENERATION, self.sync(one, generation=generation))

    def test_a_sync_while_joining_is_refused(self) -> None:
        one, two = self.stable(2)
        self.join(one.member_id)
        self.assert_refused(ErrorCode.REBALANCE_IN_PROGRESS, self.sync(two))

    def test_a_sync_in_an_empty_group_is_refused(self) -> None:
        (one,) = self.stable(1)
        self.leave(one.member_id)
        self.assert_refused(ErrorCode.UNKNOWN_MEMBER_ID, self.sync(one, generation=2))

    def test_a_sync_with_another_protocol_is_refused(self) -> None:
        """
        One that names no protocol is accepted.
        """
        leader, follower = self.members(2)
        code = ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        self.assert_refused(code, self.sync(follower, protocol_type="connect"))
        self.assert_refused(code, self.sync(follower, protocol="sticky"))
        self.sync(leader, protocol_type="consumer", protocol="range")
        self.assertEqual("Stable", self.group.state)

    def test_a_new_member_interrupts_waiting_syncs(self) -> None:
        """
        Members that wait for the leader join again, and have no assignment.
        """
        _leader, follower = self.members(2)
        waiting = self.sync(follower)
        self.join()
        self.assert_refused(ErrorCode.REBALANCE_IN_PROGRESS, waiting)

    def test_the_session_begins_with_the_sync_response(self) -> None:
        """
        The response may be an error.
        """
        leader, follower = self.members(2, rebalance_timeout_ms=300_000)
        waiting = self.sync(follower)
        self.advance(100, [leader])
        self.join(leader.member_id, protocols={"range": b"changed"})
        self.assert_refused(ErrorCode.REBALANCE_IN_PROGRESS, waiting)
        self.advance(SESSION_MS / 1000 - 5)
        self.assertEqual(2, len(self.group.members))
        self.advance(5)
        self.assertEqual(1, len(self.group.members))

    def test_an_assignment_ends_with_the_next_interrupted_generation(self) -> None:
        leader, follower = self.stable(2)
        again = self.join(leader.member_id)
        self.join(follower.member_id)
        self.successResultOf(again)
        self.assertEqual(
            [leader.member_id, follower.member_id], [each.assignment.decode() for each in self.group.members]
        )
        self.group.rebalance("a test")
        self.assertEqual([b"", b""], [each.assignment for each in self.group.members])

    def test_a_second_waiting_sync_refuses_the_first(self) -> None:
        leader, follower = self.members(2)
        first, second = self.sync(follower), self.sync(follower)
        self.assert_refused(ErrorCode.REBALANCE_IN_PROGRESS, first)
        self.sync(leader)
        self.successResultOf(second)

    def test_a_leader_that_does_not_sync_is_removed(self) -> None:
        """
        After the rebalance timeout the waiting members rejoin.
        """
        leader, follower = self.members(2)
        waiting = self.sync(follower)
        self.advance(REBALANCE_S - 1, [leader])
        self.assertNoResult(waiting)
        self.advance(1, [leader])
        self.assert_refused(ErrorCode.REBALANCE_IN_PROGRESS, waiting)
        self.assertEqual(follower.member_id, self.successResultOf(self.join(follower.member_id)).leader)
        self.assert_raises(ErrorCode.UNKNOWN_MEMBER_ID, self.beat, leader)

    def test_a_follower_that_does_not_sync_is_removed(self) -> None:
        """
        This holds in a stable group too.
        """
        leader, follower = self.members(2)
        self.sync(leader)
        self.advance(REBALANCE_S, [leader, follower])
        self.assertEqual("PreparingRebalance", self.group.state)
        self.assertEqual([leader.member_id], [each.id for each in self.group.members])

    def test_no_timer_is_left_when_all_have_synced(self) -> None:
        joined = self.stable(2)
        self.advance(REBALANCE_S + 1, joined)
        self.assertEqual("Stable", self.group.state)

    def test_a_group_that_nobody_syncs_is_empty(self) -> None:
        joined = self.members(2)
        self.advance(REBALANCE_S, joined)
        self.assertEqual("Empty", self.group.state)

    def test_a_waiting_sync_keeps_the_session_alive(self) -> None:
        """
        The member need send no heartbeats; its session begins with the response.
        """
        leader, follower = self.members(2, rebalance_timeout_ms=300_000)
        waiting = self.sync(follower)
        self.advance(100, [leader])
        self.sync(leader)
        self.successResultOf(waiting)
        self.clock.advance(SESSION_MS / 1000 - 0.1)
        self.assertEqual(2, len(self.group.members))
        self.clock.advance(0.1)
        self.assertEqual(0, len(self.group.members))

    def test_a_second_assignment_during_the_write_is_ignored(self) -> None:
        (leader,) = self.members(1)
        self.rows.waits = True
        first = self.sync(leader, {leader.member_id: b"first"})
        second = self.sync(leader, {leader.member_id: b"second"})
        self.assertEqual(1, len(self.rows.waiting))
        self.rows.settle()
        self.assert_refused(ErrorCode.REBALANCE_IN_PROGRESS, first)
        self.assertEqual(b"first", self.successResultOf(second).assignment)

    def test_a_member_removed_while_it_waits_gets_an_error(self) -> None:
        _leader, follower = self.members(2)
        waiting = self.sync(follower)
        self.leave(follower.member_id)
        self.assert_refused(ErrorCode.UNKNOWN_MEMBER_ID, waiting)


class StopTests(GroupTestCase):
    def test_a_stop_refuses_waiting_members(self) -> None:
        """
        They are sent to another coordinator, and no timer is left.
        """
        one, two = self.members(2)
        joining, syncing = self.join(two.member_id, protocols={"range": b"changed"}), self.sync(one)
        self.assert_refused(ErrorCode.REBALANCE_IN_PROGRESS, syncing)
        later(self.group.join, self.asking(takes_member_id=True)).addErrback(lambda _: None)
        self.group.stop()
        self.assert_refused(ErrorCode.NOT_COORDINATOR, joining)
        self.assertEqual([], self.clock.getDelayedCalls())
        self.assertEqual("Dead", self.group.state)

    def test_a_stop_refuses_waiting_syncs(self) -> None:
        """
        The error differs where the group is converted.
        """
        _, two = self.members(2)
        waiting = self.sync(two)
        self.group.stop(ErrorCode.REBALANCE_IN_PROGRESS)
        self.assert_refused(ErrorCode.REBALANCE_IN_PROGRESS, waiting)

    def test_a_stopped_group_is_not_available(self) -> None:
        (one,) = self.stable(1)
        self.group.stop()
        for answer in (self.join(), self.join(one.member_id), self.sync(one), later(self.beat, one)):
            self.assert_refused(ErrorCode.COORDINATOR_NOT_AVAILABLE, answer)
        self.assert_refused(ErrorCode.COORDINATOR_NOT_AVAILABLE, later(self.leave, one.member_id))
        for member_id, epoch in ((one.member_id, 1), ("", -1)):
            commit = self.group.check_commit
            self.assert_raises(ErrorCode.COORDINATOR_NOT_AVAILABLE, commit, member_id, None, epoch, transactional=True)
        self.assert_raises(ErrorCode.GROUP_ID_NOT_FOUND, self.group.check_fetch, None, -1)

    def test_a_write_does_not_revive_a_stopped_group(self) -> None:
        (one,) = self.members(1)
        self.rows.waits = True
        waiting = self.sync(one)
        self.group.stop()
        self.rows.settle()
        self.assert_refused(ErrorCode.NOT_COORDINATOR, waiting)
        self.assertEqual("Dead", self.group.state)
