"""
How a classic group knows that its members live, and lets them go.
"""

from kgateway.groups.classic.exchange import Joined, Leave
from kgateway.groups.classic.joining import NEW_MEMBER_TIMEOUT_MS
from kgateway.wire.errors import ErrorCode
from tests.groups.classic.clients import SESSION_MS, GroupTestCase

SESSION_S = SESSION_MS / 1000


class SessionTests(GroupTestCase):
    def test_expires(self) -> None:
        """
        A member that is silent for its session timeout is out, and the others join again.
        """
        one, _two = self.stable(2)
        self.advance(SESSION_S - 5, [one])
        self.assertEqual(2, len(self.group.members))
        self.advance(5, [one])
        self.assertEqual([one.member_id], [each.id for each in self.group.members])
        self.assertEqual("PreparingRebalance", self.group.state)

    def test_lives(self) -> None:
        """
        A member that sends heartbeats stays.
        """
        one, two = self.stable(2)
        self.advance(10 * SESSION_S, [one, two])
        self.assertEqual("Stable", self.group.state)

    def test_own_timeout(self) -> None:
        """
        Each member has a session timeout of its own.
        """
        waiting = [self.join(session_timeout_ms=timeout_ms) for timeout_ms in (10_000, 20_000)]
        self.wait_for_newcomers()
        joined = [self.successResultOf(each) for each in waiting]
        self.share_out(joined)
        self.clock.advance(10)
        self.assertEqual([joined[1].member_id], [each.id for each in self.group.members])

    def test_shorter_timeout(self) -> None:
        """
        A session that becomes shorter ends sooner.
        """
        one, two = self.stable(2)
        waiting = self.join(one.member_id, session_timeout_ms=10_000)
        self.join(two.member_id)
        self.share_out([self.successResultOf(waiting), self.successResultOf(self.join(two.member_id))])
        self.clock.advance(10)
        self.assertEqual([two.member_id], [each.id for each in self.group.members])

    def test_cheap(self) -> None:
        """
        Heartbeats set no timers.
        """
        (one,) = self.stable(1)
        before = self.clock.getDelayedCalls()
        for _ in range(100):
            self.beat(one)
        self.assertEqual(before, self.clock.getDelayedCalls())


class HeartbeatTests(GroupTestCase):
    def test_while_joining(self) -> None:
        """
        While members join, a member is told to, and lives.
        """
        one, two = self.stable(2, rebalance_timeout_ms=300_000)
        self.join(one.member_id)
        self.clock.advance(SESSION_S - 1)
        self.assert_raises(ErrorCode.REBALANCE_IN_PROGRESS, self.beat, two)
        self.clock.advance(SESSION_S - 1)
        self.assertEqual(2, len(self.group.members))

    def test_while_syncing(self) -> None:
        """
        A member that has joined may send heartbeats before it syncs.
        """
        (one,) = self.members(1)
        self.clock.advance(SESSION_S - 1)
        self.beat(one)
        self.clock.advance(2)
        self.assertEqual(1, len(self.group.members))

    def test_other_signs(self) -> None:
        """
        A member that asks for anything lives.
        """
        one, two = self.stable(2)
        self.clock.advance(SESSION_S - 1)
        self.sync(one)
        self.join(two.member_id)
        self.clock.advance(SESSION_S - 1)
        self.assertEqual(2, len(self.group.members))

    def test_new(self) -> None:
        """
        A new member that says something before its first generation is given no less time for that.
        """
        self.join()
        (member,) = self.group.members
        self.group.check_commit(member.id, None, 0, transactional=False)
        self.assertEqual(NEW_MEMBER_TIMEOUT_MS / 1000, max(call.getTime() for call in self.clock.getDelayedCalls()))

    def test_fenced(self) -> None:
        """
        Strangers and members of another generation are told so.
        """
        (one,) = self.stable(1)
        heartbeat = self.group.heartbeat
        self.assert_raises(ErrorCode.UNKNOWN_MEMBER_ID, heartbeat, "stranger", None, 1)
        self.assert_raises(ErrorCode.UNKNOWN_MEMBER_ID, heartbeat, "", None, 1)
        for generation in (-1, 0, 2):
            self.assert_raises(ErrorCode.ILLEGAL_GENERATION, heartbeat, one.member_id, None, generation)


class LeaveTests(GroupTestCase):
    def test_leaves(self) -> None:
        """
        Who leaves is gone, and the others join again.
        """
        one, two = self.stable(2)
        self.assertEqual([ErrorCode.NONE], self.leave(one.member_id))
        self.assertEqual(two.member_id, self.group.members.leader)
        self.assert_raises(ErrorCode.UNKNOWN_MEMBER_ID, self.beat, one)
        self.assert_raises(ErrorCode.REBALANCE_IN_PROGRESS, self.beat, two)
        self.assertEqual(two.member_id, self.successResultOf(self.join(two.member_id)).leader)

    def test_last(self) -> None:
        """
        When the last one leaves, the group is empty, and that is written.
        """
        (one,) = self.stable(1)
        self.leave(one.member_id)
        self.assertEqual(("Empty", 2, True), (self.group.state, self.group.generation, self.group.is_empty))
        self.assertEqual("Empty", self.restarted().state)

    def test_stranger(self) -> None:
        """
        A stranger cannot leave, and disturbs nobody.
        """
        self.stable(1)
        self.assertEqual([ErrorCode.UNKNOWN_MEMBER_ID] * 2, self.leave("stranger", ""))
        self.assertEqual("Stable", self.group.state)

    def test_several(self) -> None:
        """
        Several leave at a time, and each has an outcome of its own.
        """
        one, two, three = self.stable(3)
        outcomes = self.leave(one.member_id, "stranger", three.member_id, three.member_id)
        expected = [ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID]
        self.assertEqual(expected, outcomes)
        self.assertEqual([two.member_id], [each.id for each in self.group.members])

    def test_by_instance(self) -> None:
        """
        An administrator takes out a static member by its instance id; a member names both ids.
        """
        waiting = [self.join(instance_id=name) for name in "abc"]
        self.wait_for_newcomers()
        _a, b, c = (self.successResultOf(each) for each in waiting)
        outcomes = self.leave(
            Leave("", "a"), Leave("", "unknown"), Leave(b.member_id, "b"), Leave(b.member_id, "c"), Leave("x", "x")
        )
        unknown, fenced = ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID
        self.assertEqual([ErrorCode.NONE, unknown, ErrorCode.NONE, fenced, unknown], outcomes)
        self.assertEqual([c.member_id], [each.id for each in self.group.members])


class CommitTests(GroupTestCase):
    def commit(self, joined: Joined, **more: object) -> None:
        values: dict[str, object] = {"member_id": joined.member_id, "epoch": joined.generation, "instance_id": None}
        self.group.check_commit(**{**values, "transactional": False, **more})  # type: ignore[arg-type]

    def test_members(self) -> None:
        """
        Members of this generation may commit, and live by it.
        """
        (one,) = self.stable(1)
        self.clock.advance(SESSION_S - 1)
        self.commit(one)
        self.clock.advance(SESSION_S - 1)
        self.assertEqual(1, len(self.group.members))

    def test_fenced(self) -> None:
        """
        Others may not.
        """
        (one,) = self.stable(1)
        self.assert_raises(ErrorCode.UNKNOWN_MEMBER_ID, self.commit, one, member_id="stranger")
        self.assert_raises(ErrorCode.UNKNOWN_MEMBER_ID, self.commit, one, instance_id="i")
        for epoch in (-1, 0, 2):
            self.assert_raises(ErrorCode.ILLEGAL_GENERATION, self.commit, one, epoch=epoch)
        self.assert_raises(ErrorCode.UNKNOWN_MEMBER_ID, self.commit, one, member_id="", epoch=-1)

    def test_while_joining(self) -> None:
        """
        While members join, those of the last generation may commit what they have read.
        """
        one, two = self.stable(2)
        self.join(one.member_id)
        self.commit(two)

    def test_before_sync(self) -> None:
        """
        A member that has joined and not synced has nothing to commit, but in a transaction that was open.
        """
        (one,) = self.members(1)
        self.assert_raises(ErrorCode.REBALANCE_IN_PROGRESS, self.commit, one)
        self.commit(one, transactional=True)

    def test_empty(self) -> None:
        """
        In a group without members anybody may commit who names no generation.
        """
        self.group.check_commit("", None, -1, transactional=False)
        self.group.check_commit("stranger", None, -1, transactional=False)
        self.assert_raises(
            ErrorCode.UNKNOWN_MEMBER_ID, self.group.check_commit, "stranger", None, 0, transactional=False
        )

    def test_transactional(self) -> None:
        """
        A transaction that names no member may commit; one that does has to be right.
        """
        (one,) = self.stable(1)
        self.commit(one, member_id="", epoch=-1, transactional=True)
        self.assert_raises(ErrorCode.ILLEGAL_GENERATION, self.commit, one, epoch=0, transactional=True)
        self.clock.advance(SESSION_S - 1)
        self.commit(one, transactional=True)
        self.clock.advance(1)
        self.assertEqual("Empty", self.group.state)

    def test_fetch(self) -> None:
        """
        Anybody may fetch offsets.
        """
        self.stable(1)
        self.group.check_fetch("stranger", 7)
