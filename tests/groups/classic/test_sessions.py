"""
Sessions, heartbeats, leaving and commits of a classic group.
"""

from kgateway.groups.classic.member_join import NEW_MEMBER_TIMEOUT_MS
from kgateway.groups.classic.requests import JoinResult, LeavingMember
from kgateway.wire.errors import ErrorCode
from tests.groups.classic.clients import SESSION_MS, GroupTestCase

SESSION_S = SESSION_MS / 1000


class SessionTests(GroupTestCase):
    def test_silent_members_are_removed(self) -> None:
        """
        The others join again after its session timeout.
        """
        one, _two = self.stable(2)
        self.advance(SESSION_S - 5, [one])
        self.assertEqual(2, len(self.group.members))
        self.advance(5, [one])
        self.assertEqual([one.member_id], [each.id for each in self.group.members])
        self.assertEqual("PreparingRebalance", self.group.state)

    def test_heartbeats_keep_members(self) -> None:
        one, two = self.stable(2)
        self.advance(10 * SESSION_S, [one, two])
        self.assertEqual("Stable", self.group.state)

    def test_each_member_has_its_own_session_timeout(self) -> None:
        waiting = [self.join(session_timeout_ms=timeout_ms) for timeout_ms in (10_000, 20_000)]
        self.wait_for_newcomers()
        joined = [self.successResultOf(each) for each in waiting]
        self.sync_all(joined)
        self.clock.advance(10)
        self.assertEqual([joined[1].member_id], [each.id for each in self.group.members])

    def test_a_shorter_session_ends_sooner(self) -> None:
        one, two = self.stable(2)
        waiting = self.join(one.member_id, session_timeout_ms=10_000)
        self.join(two.member_id)
        self.sync_all([self.successResultOf(waiting), self.successResultOf(self.join(two.member_id))])
        self.clock.advance(10)
        self.assertEqual([two.member_id], [each.id for each in self.group.members])

    def test_heartbeats_set_no_timers(self) -> None:
        (one,) = self.stable(1)
        before = self.clock.getDelayedCalls()
        for _ in range(100):
            self.beat(one)
        self.assertEqual(before, self.clock.getDelayedCalls())


class HeartbeatTests(GroupTestCase):
    def test_heartbeats_while_joining(self) -> None:
        """
        They are answered REBALANCE_IN_PROGRESS and renew the session.
        """
        one, two = self.stable(2, rebalance_timeout_ms=300_000)
        self.join(one.member_id)
        self.clock.advance(SESSION_S - 1)
        self.assert_raises(ErrorCode.REBALANCE_IN_PROGRESS, self.beat, two)
        self.clock.advance(SESSION_S - 1)
        self.assertEqual(2, len(self.group.members))

    def test_heartbeats_before_the_sync_are_accepted(self) -> None:
        (one,) = self.members(1)
        self.clock.advance(SESSION_S - 1)
        self.beat(one)
        self.clock.advance(2)
        self.assertEqual(1, len(self.group.members))

    def test_every_request_renews_the_session(self) -> None:
        one, two = self.stable(2)
        self.clock.advance(SESSION_S - 1)
        self.sync(one)
        self.join(two.member_id)
        self.clock.advance(SESSION_S - 1)
        self.assertEqual(2, len(self.group.members))

    def test_requests_do_not_shorten_the_time_of_a_new_member(self) -> None:
        """
        This holds before its first generation.
        """
        self.join()
        (member,) = self.group.members
        self.group.check_commit(member.id, None, 0, transactional=False)
        self.assertEqual(NEW_MEMBER_TIMEOUT_MS / 1000, max(call.getTime() for call in self.clock.getDelayedCalls()))

    def test_heartbeats_are_fenced(self) -> None:
        """
        Unknown members and other generations are refused.
        """
        (one,) = self.stable(1)
        heartbeat = self.group.heartbeat
        self.assert_raises(ErrorCode.UNKNOWN_MEMBER_ID, heartbeat, "stranger", None, 1)
        self.assert_raises(ErrorCode.UNKNOWN_MEMBER_ID, heartbeat, "", None, 1)
        for generation in (-1, 0, 2):
            self.assert_raises(ErrorCode.ILLEGAL_GENERATION, heartbeat, one.member_id, None, generation)


class LeaveTests(GroupTestCase):
    def test_a_leaving_member_is_removed_at_once(self) -> None:
        """
        The others join again.
        """
        one, two = self.stable(2)
        self.assertEqual([ErrorCode.NONE], self.leave(one.member_id))
        self.assertEqual(two.member_id, self.group.members.leader)
        self.assert_raises(ErrorCode.UNKNOWN_MEMBER_ID, self.beat, one)
        self.assert_raises(ErrorCode.REBALANCE_IN_PROGRESS, self.beat, two)
        self.assertEqual(two.member_id, self.successResultOf(self.join(two.member_id)).leader)

    def test_a_group_that_the_last_member_leaves_is_written_as_empty(self) -> None:
        (one,) = self.stable(1)
        self.leave(one.member_id)
        self.assertEqual(("Empty", 2, True), (self.group.state, self.group.generation, self.group.is_empty))
        self.assertEqual("Empty", self.restarted().state)

    def test_unknown_members_cannot_leave(self) -> None:
        """
        Nobody is disturbed.
        """
        self.stable(1)
        self.assertEqual([ErrorCode.UNKNOWN_MEMBER_ID] * 2, self.leave("stranger", ""))
        self.assertEqual("Stable", self.group.state)

    def test_several_members_leave_in_one_request(self) -> None:
        """
        Each has its own outcome.
        """
        one, two, three = self.stable(3)
        outcomes = self.leave(one.member_id, "stranger", three.member_id, three.member_id)
        expected = [ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID]
        self.assertEqual(expected, outcomes)
        self.assertEqual([two.member_id], [each.id for each in self.group.members])

    def test_members_are_removed_by_instance_id(self) -> None:
        """
        An administrator names only the instance id, a member names both ids.
        """
        waiting = [self.join(instance_id=name) for name in "abc"]
        self.wait_for_newcomers()
        _a, b, c = (self.successResultOf(each) for each in waiting)
        outcomes = self.leave(
            LeavingMember("", "a"),
            LeavingMember("", "unknown"),
            LeavingMember(b.member_id, "b"),
            LeavingMember(b.member_id, "c"),
            LeavingMember("x", "x"),
        )
        unknown, fenced = ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID
        self.assertEqual([ErrorCode.NONE, unknown, ErrorCode.NONE, fenced, unknown], outcomes)
        self.assertEqual([c.member_id], [each.id for each in self.group.members])


class CommitTests(GroupTestCase):
    def commit(self, joined: JoinResult, **more: object) -> None:
        values: dict[str, object] = {"member_id": joined.member_id, "epoch": joined.generation, "instance_id": None}
        self.group.check_commit(**{**values, "transactional": False, **more})  # type: ignore[arg-type]

    def test_members_may_commit(self) -> None:
        """
        A commit renews the session.
        """
        (one,) = self.stable(1)
        self.clock.advance(SESSION_S - 1)
        self.commit(one)
        self.clock.advance(SESSION_S - 1)
        self.assertEqual(1, len(self.group.members))

    def test_members_of_other_generations_may_not_commit(self) -> None:
        (one,) = self.stable(1)
        self.assert_raises(ErrorCode.UNKNOWN_MEMBER_ID, self.commit, one, member_id="stranger")
        self.assert_raises(ErrorCode.UNKNOWN_MEMBER_ID, self.commit, one, instance_id="i")
        for epoch in (-1, 0, 2):
            self.assert_raises(ErrorCode.ILLEGAL_GENERATION, self.commit, one, epoch=epoch)
        self.assert_raises(ErrorCode.UNKNOWN_MEMBER_ID, self.commit, one, member_id="", epoch=-1)

    def test_the_last_generation_may_commit_while_joining(self) -> None:
        """
        Its members commit what they have read.
        """
        one, two = self.stable(2)
        self.join(one.member_id)
        self.commit(two)

    def test_an_unsynced_member_commits_in_open_transactions_only(self) -> None:
        (one,) = self.members(1)
        self.assert_raises(ErrorCode.REBALANCE_IN_PROGRESS, self.commit, one)
        self.commit(one, transactional=True)

    def test_anybody_may_commit_to_an_empty_group(self) -> None:
        """
        The client must name no generation.
        """
        self.group.check_commit("", None, -1, transactional=False)
        self.group.check_commit("stranger", None, -1, transactional=False)
        self.assert_raises(
            ErrorCode.UNKNOWN_MEMBER_ID, self.group.check_commit, "stranger", None, 0, transactional=False
        )

    def test_a_transaction_need_not_name_a_member(self) -> None:
        """
        If it does, it must name the right one.
        """
        (one,) = self.stable(1)
        self.commit(one, member_id="", epoch=-1, transactional=True)
        self.assert_raises(ErrorCode.ILLEGAL_GENERATION, self.commit, one, epoch=0, transactional=True)
        self.clock.advance(SESSION_S - 1)
        self.commit(one, transactional=True)
        self.clock.advance(1)
        self.assertEqual("Empty", self.group.state)

    def test_any_client_may_fetch_offsets(self) -> None:
        self.stable(1)
        self.group.check_fetch("stranger", 7)
