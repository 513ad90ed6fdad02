"""
How a classic group comes from one generation to the next.
"""

from kgateway.wire.errors import ErrorCode
from tests.groups.classic.clients import REBALANCE_MS, SESSION_MS, GroupTestCase, later

REBALANCE_S = REBALANCE_MS / 1000


class BarrierTests(GroupTestCase):
    def test_waits_for_all(self) -> None:
        """
        The next generation begins when the last member has joined.
        """
        joined = self.stable(3)
        new = self.join()
        waiting = [self.join(each.member_id) for each in joined[1:]]
        self.assertNoResult(new)
        waiting.append(self.join(joined[0].member_id))
        self.assertEqual([2] * 4, [self.successResultOf(each).generation for each in [new, *waiting]])

    def test_leader_is_told_of_all(self) -> None:
        """
        The leader is told of all members, the others of none.
        """
        one, two, three = self.members(3)
        self.assertEqual([one.member_id] * 3, [each.leader for each in (one, two, three)])
        self.assertEqual({each.member_id for each in (one, two, three)}, {each.member_id for each in one.members})
        self.assertEqual(((), ()), (two.members, three.members))

    def test_too_late(self) -> None:
        """
        Who has not joined within the rebalance timeout is out, though it sends heartbeats.
        """
        one, two = self.stable(2)
        again = self.join(one.member_id)
        self.advance(REBALANCE_S - 1, [two])
        self.assertNoResult(again)
        self.advance(1, [two])
        joined = self.successResultOf(again)
        self.assertEqual([one.member_id], [each.member_id for each in joined.members])
        self.assert_raises(ErrorCode.UNKNOWN_MEMBER_ID, self.beat, two)

    def test_longest_timeout(self) -> None:
        """
        The longest rebalance timeout of the members counts.
        """
        one, two = self.stable(2, rebalance_timeout_ms=10_000)
        again = self.join(two.member_id, rebalance_timeout_ms=30_000, protocols={"range": b"changed"})
        self.advance(29, [one])
        self.assertNoResult(again)
        self.advance(1, [one])
        self.successResultOf(again)

    def test_leader_is_late(self) -> None:
        """
        Where the leader does not join, a member leads that did, even if the leader is static and stays.
        """
        one, two, three = self.stable(3)
        again = self.join(two.member_id, protocols={"range": b"changed"})
        self.advance(REBALANCE_S, [one, three])
        self.assertEqual(two.member_id, self.successResultOf(again).leader)

    def test_nobody_joins(self) -> None:
        """
        Where no member joins again, the group is empty in the end.
        """
        self.stable(2)
        self.group.rebalance("a test")
        self.clock.advance(REBALANCE_S)
        self.assertEqual(("Empty", 2), (self.group.state, self.group.generation))

    def test_expired_meanwhile(self) -> None:
        """
        A member that falls silent is not waited for.
        """
        one, _two = self.stable(2, rebalance_timeout_ms=300_000)
        again = self.join(one.member_id)
        self.clock.advance(SESSION_MS / 1000)
        self.assertEqual(1, len(self.successResultOf(again).members))

    def test_left_meanwhile(self) -> None:
        """
        A member that leaves is not waited for.
        """
        one, two = self.stable(2)
        again = self.join(one.member_id)
        self.leave(two.member_id)
        self.assertEqual(1, len(self.successResultOf(again).members))

    def test_waiting_is_a_sign_of_life(self) -> None:
        """
        A member that waits for the next generation need send no heartbeats.
        """
        one, two = self.stable(2, rebalance_timeout_ms=300_000)
        again = self.join(one.member_id)
        self.advance(200, [two])
        self.assertNoResult(again)
        self.join(two.member_id)
        self.assertEqual(2, len(self.successResultOf(again).members))
        self.clock.advance(SESSION_MS / 1000 - 1)
        self.assertEqual(2, len(self.group.members))

    def test_asked_for(self) -> None:
        """
        A group can be told to rebalance; an empty one has nothing to do.
        """
        self.group.rebalance("a test")
        self.assertEqual("Empty", self.group.state)
        (one,) = self.stable(1)
        self.group.rebalance("a test")
        self.assert_raises(ErrorCode.REBALANCE_IN_PROGRESS, self.beat, one)


class SyncTests(GroupTestCase):
    def test_waits_for_leader(self) -> None:
        """
        Followers wait for the leader, and each is given what the leader gave it.
        """
        leader, follower = self.members(2)
        waiting = self.sync(follower)
        self.assertNoResult(waiting)
        own = self.sync(leader, {leader.member_id: b"for one", follower.member_id: b"for two"})
        self.assertEqual(b"for one", self.successResultOf(own).assignment)
        synced = self.successResultOf(waiting)
        self.assertEqual((b"for two", "consumer", "range"), (synced.assignment, synced.protocol_type, synced.protocol))
        self.assertEqual("Stable", self.group.state)

    def test_after_leader(self) -> None:
        """
        In a stable group a member is given its assignment at once, as often as it asks.
        """
        leader, follower = self.members(2)
        self.sync(leader, {follower.member_id: b"for two"})
        for _ in range(2):
            self.assertEqual(b"for two", self.successResultOf(self.sync(follower)).assignment)

    def test_strangers(self) -> None:
        """
        What is assigned to strangers counts for nothing; a member that was forgotten is given nothing.
        """
        leader, follower = self.members(2)
        self.sync(leader, {"stranger": b"x", leader.member_id: b"for one"})
        self.assertEqual(b"", self.successResultOf(self.sync(follower)).assignment)
        value = self.rows.written[-1].value
        self.assertEqual([b"for one", b""], [each.assignment for each in value.members])  # type: ignore[union-attr]

    def test_only_the_leader_assigns(self) -> None:
        """
        What a follower assigns counts for nothing.
        """
        leader, follower = self.members(2)
        self.assertNoResult(self.sync(follower, {follower.member_id: b"mine"}))
        self.sync(leader, {})
        self.assertEqual(b"", self.successResultOf(self.sync(follower)).assignment)

    def test_fenced(self) -> None:
        """
        A stranger, and a member of another generation, are told so.
        """
        (one,) = self.members(1)
        self.assert_refused(ErrorCode.UNKNOWN_MEMBER_ID, self.sync(one, member_id="stranger"))
        for generation in (0, 2, -1):
            self.assert_refused(ErrorCode.ILLEGAL_GENERATION, self.sync(one, generation=generation))

    def test_while_joining(self) -> None:
        """
        While members join there is nothing to be had.
        """
        one, two = self.stable(2)
        self.join(one.member_id)
        self.assert_refused(ErrorCode.REBALANCE_IN_PROGRESS, self.sync(two))

    def test_empty(self) -> None:
        """
        An empty group knows nobody.
        """
        (one,) = self.stable(1)
        self.leave(one.member_id)
        self.assert_refused(ErrorCode.UNKNOWN_MEMBER_ID, self.sync(one, generation=2))

    def test_protocol_disagrees(self) -> None:
        """
        A member that means another protocol than the group has agreed on is refused; one that names none is not.
        """
        leader, follower = self.members(2)
        code = ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        self.assert_refused(code, self.sync(follower, protocol_type="connect"))
        self.assert_refused(code, self.sync(follower, protocol="sticky"))
        self.sync(leader, protocol_type="consumer", protocol="range")
        self.assertEqual("Stable", self.group.state)

    def test_interrupted(self) -> None:
        """
        Who waits for the leader joins again when somebody comes, and has no assignment left.
        """
        _leader, follower = self.members(2)
        waiting = self.sync(follower)
        self.join()
        self.assert_refused(ErrorCode.REBALANCE_IN_PROGRESS, waiting)

    def test_session_after_interruption(self) -> None:
        """
        The session of who waited for the leader begins with the answer, whatever it is.
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

    def test_nothing_left(self) -> None:
        """
        An assignment holds until the next generation has been interrupted.
        """
        leader, follower = self.stable(2)
        again = self.join(leader.member_id)
        self.join(follower.member_id)
        self.successResultOf(again)
        self.assertEqual(
            [leader.member_id, follower.member_id], [each.assignment.decode() for each in self.group.members]
        )
        self.group.rebalance("a test")
        self.assertEqual([b"", b""], [each.assignment for each in self.group.members])

    def test_asks_twice(self) -> None:
        """
        Of two syncs of one member that wait, the first ends.
        """
        leader, follower = self.members(2)
        first, second = self.sync(follower), self.sync(follower)
        self.assert_refused(ErrorCode.REBALANCE_IN_PROGRESS, first)
        self.sync(leader)
        self.successResultOf(second)

    def test_leader_never_syncs(self) -> None:
        """
        A leader that does not assign within the rebalance timeout is out; who waited for it joins again.
        """
        leader, follower = self.members(2)
        waiting = self.sync(follower)
        self.advance(REBALANCE_S - 1, [leader])
        self.assertNoResult(waiting)
        self.advance(1, [leader])
        self.assert_refused(ErrorCode.REBALANCE_IN_PROGRESS, waiting)
        self.assertEqual(follower.member_id, self.successResultOf(self.join(follower.member_id)).leader)
        self.assert_raises(ErrorCode.UNKNOWN_MEMBER_ID, self.beat, leader)

    def test_follower_never_syncs(self) -> None:
        """
        A follower that never asks for its assignment is out too, though the group is stable.
        """
        leader, follower = self.members(2)
        self.sync(leader)
        self.advance(REBALANCE_S, [leader, follower])
        self.assertEqual("PreparingRebalance", self.group.state)
        self.assertEqual([leader.member_id], [each.id for each in self.group.members])

    def test_all_synced(self) -> None:
        """
        Where all have synced, nothing is due.
        """
        joined = self.stable(2)
        self.advance(REBALANCE_S + 1, joined)
        self.assertEqual("Stable", self.group.state)

    def test_nobody_syncs(self) -> None:
        """
        Where no member syncs, the group is empty.
        """
        joined = self.members(2)
        self.advance(REBALANCE_S, joined)
        self.assertEqual("Empty", self.group.state)

    def test_waiting_is_a_sign_of_life(self) -> None:
        """
        A member that waits for the leader need send no heartbeats; its session begins with the answer.
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

    def test_assigned_again_meanwhile(self) -> None:
        """
        While the assignment is written, another one of the leader counts for nothing.
        """
        (leader,) = self.members(1)
        self.rows.waits = True
        first = self.sync(leader, {leader.member_id: b"first"})
        second = self.sync(leader, {leader.member_id: b"second"})
        self.assertEqual(1, len(self.rows.waiting))
        self.rows.settle()
        self.assert_refused(ErrorCode.REBALANCE_IN_PROGRESS, first)
        self.assertEqual(b"first", self.successResultOf(second).assignment)

    def test_left_while_it_waits(self) -> None:
        """
        A member that is taken out while it waits for the leader is told so.
        """
        _leader, follower = self.members(2)
        waiting = self.sync(follower)
        self.leave(follower.member_id)
        self.assert_refused(ErrorCode.UNKNOWN_MEMBER_ID, waiting)


class StopTests(GroupTestCase):
    def test_who_waits_is_told(self) -> None:
        """
        Who waits for a group that goes is told to look for another coordinator, and no timer is left.
        """
        one, two = self.members(2)
        joining, syncing = self.join(two.member_id, protocols={"range": b"changed"}), self.sync(one)
        self.assert_refused(ErrorCode.REBALANCE_IN_PROGRESS, syncing)
        later(self.group.join, self.asking(takes_member_id=True)).addErrback(lambda _: None)
        self.group.stop()
        self.assert_refused(ErrorCode.NOT_COORDINATOR, joining)
        self.assertEqual([], self.clock.getDelayedCalls())
        self.assertEqual("Dead", self.group.state)

    def test_syncing(self) -> None:
        """
        So is who waits for its assignment, also with another error if the group becomes one of another kind.
        """
        _, two = self.members(2)
        waiting = self.sync(two)
        self.group.stop(ErrorCode.REBALANCE_IN_PROGRESS)
        self.assert_refused(ErrorCode.REBALANCE_IN_PROGRESS, waiting)

    def test_asked_afterwards(self) -> None:
        """
        A group that has gone answers that no coordinator is there.
        """
        (one,) = self.stable(1)
        self.group.stop()
        for answer in (self.join(), self.join(one.member_id), self.sync(one), later(self.beat, one)):
            self.assert_refused(ErrorCode.COORDINATOR_NOT_AVAILABLE, answer)
        self.assert_refused(ErrorCode.COORDINATOR_NOT_AVAILABLE, later(self.leave, one.member_id))
        for member_id, epoch in ((one.member_id, 1), ("", -1)):
            commit = self.group.check_commit
            self.assert_raises(ErrorCode.COORDINATOR_NOT_AVAILABLE, commit, member_id, None, epoch, transactional=True)
        self.assert_raises(ErrorCode.GROUP_ID_NOT_FOUND, self.group.check_fetch, None, -1)

    def test_written_afterwards(self) -> None:
        """
        What was being written does not bring it back.
        """
        (one,) = self.members(1)
        self.rows.waits = True
        waiting = self.sync(one)
        self.group.stop()
        self.rows.settle()
        self.assert_refused(ErrorCode.NOT_COORDINATOR, waiting)
        self.assertEqual("Dead", self.group.state)
