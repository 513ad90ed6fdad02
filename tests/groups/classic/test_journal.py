"""
The rows of a classic group, and its state after a restart.
"""

from twisted.internet.defer import Deferred

from kgateway.groups.classic.requests import JoinResult
from kgateway.groups.group import GroupType
from kgateway.groups.records import Row
from kgateway.messages.stored.group_metadata import GroupMetadataKey, GroupMetadataValue, MemberMetadata
from kgateway.wire.errors import ErrorCode, KafkaError
from tests.groups.classic.clients import DELAY_S, REBALANCE_MS, SESSION_MS, START_MS, GroupTestCase, subscription

UNAVAILABLE = KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "too few replicas")


class RowTests(GroupTestCase):
    def last(self) -> GroupMetadataValue:
        row = self.rows.written[-1]
        self.assertEqual(GroupMetadataKey(group="g"), row.key)
        assert isinstance(row.value, GroupMetadataValue)
        return row.value

    def test_a_new_group_is_written_without_a_generation(self) -> None:
        self.join()
        expected = GroupMetadataValue(
            protocol_type="", generation=0, protocol=None, leader=None, current_state_timestamp=START_MS, members=[]
        )
        self.assertEqual(expected, self.last())
        self.join()
        self.assertEqual(1, len(self.rows.written))

    def test_a_generation_is_written_with_its_assignment(self) -> None:
        """
        The row has the members, their metadata in the chosen protocol, and their assignments.
        """
        waiting = self.join(instance_id="i", rebalance_timeout_ms=70_000, protocols={"own": b"1", "range": b"2"})
        self.clock.advance(DELAY_S)
        joined = self.successResultOf(waiting)
        self.assertEqual(1, len(self.rows.written))
        self.sync(joined, {joined.member_id: b"assigned"})
        member = MemberMetadata(
            member_id=joined.member_id,
            group_instance_id="i",
            client_id="c",
            client_host="/127.0.0.1",
            rebalance_timeout=70_000,
            session_timeout=SESSION_MS,
            subscription=b"1",
            assignment=b"assigned",
        )
        expected = GroupMetadataValue(
            protocol_type="consumer",
            generation=1,
            protocol="own",
            leader=joined.member_id,
            current_state_timestamp=START_MS + 1000 * DELAY_S,
            members=[member],
        )
        self.assertEqual(expected, self.last())

    def test_an_empty_group_is_written(self) -> None:
        """
        The row has its protocol type and the time.
        """
        (joined,) = self.stable(1)
        self.clock.advance(7)
        self.leave(joined.member_id)
        now = START_MS + 1000 * (DELAY_S + 7)
        expected = GroupMetadataValue(
            protocol_type="consumer", generation=2, protocol=None, leader=None, current_state_timestamp=now, members=[]
        )
        self.assertEqual(expected, self.last())
        self.assertEqual(now, self.group.empty_since_ms)

    def test_the_last_row_is_the_whole_state(self) -> None:
        """
        A new group has no row.
        """
        self.assertEqual([], list(self.group.rows()))
        self.stable(2)
        self.assertEqual([self.rows.written[-1]], list(self.group.rows()))


class RestartTests(GroupTestCase):
    def test_members_continue_after_a_restart(self) -> None:
        """
        Generation and assignments are the same.
        """
        joined = self.stable(3)
        self.group = self.restarted()
        self.assertEqual(("Stable", 1, "range", "consumer"), self.seen())
        self.advance(2 * SESSION_MS / 1000, joined)
        for each in joined:
            self.assertEqual(each.member_id.encode(), self.successResultOf(self.sync(each)).assignment)
            self.group.check_commit(each.member_id, None, 1, transactional=False)
        self.assertEqual(joined[1], self.successResultOf(self.join(joined[1].member_id)))
        self.assertEqual("Stable", self.group.state)
        self.assertEqual(joined[0].member_id, self.group.members.leader)

    def seen(self) -> tuple[str, int, str | None, str]:
        return self.group.state, self.group.generation, self.group.protocol, self.group.protocol_type

    def test_sessions_restart(self) -> None:
        """
        A member that does not return in time is removed.
        """
        one, _ = self.stable(2)
        self.clock.advance(SESSION_MS / 1000 - 1)
        self.group = self.restarted()
        self.advance(SESSION_MS / 1000 - 1, [one])
        self.assertEqual(2, len(self.group.members))
        self.advance(1, [one])
        self.assertEqual([one.member_id], [each.id for each in self.group.members])

    def test_a_restart_during_a_rebalance(self) -> None:
        """
        The last written generation is restored.
        """
        joined = self.stable(2)
        waiting = self.join()
        for each in joined:
            self.join(each.member_id)
        self.successResultOf(waiting)
        self.group = self.restarted()
        self.assertEqual(("Stable", 1, "range", "consumer"), self.seen())
        self.assertEqual([each.member_id for each in joined], [each.id for each in self.group.members])

    def test_timeouts_are_restored(self) -> None:
        """
        The session timeout replaces a rebalance timeout that was not written.
        """
        self.stable(1, rebalance_timeout_ms=70_000, session_timeout_ms=8_000)
        (member,) = self.restarted().members
        self.assertEqual((8_000, 70_000), (member.session_timeout_ms, member.rebalance_timeout_ms))
        row = self.rows.written[-1]
        row.value.members[0].rebalance_timeout = -1  # type: ignore[union-attr]
        (member,) = self.restarted().members
        self.assertEqual(8_000, member.rebalance_timeout_ms)

    def test_an_unknown_leader_is_replaced(self) -> None:
        """
        Some member leads.
        """
        one, _ = self.stable(2)
        self.rows.written[-1].value.leader = "nobody"  # type: ignore[union-attr]
        self.assertEqual(one.member_id, self.restarted().members.leader)

    def test_an_empty_group_continues_its_generations(self) -> None:
        """
        The time since when it is empty is restored if it was written.
        """
        (one,) = self.stable(1)
        self.leave(one.member_id)
        since = self.group.empty_since_ms
        self.clock.advance(100)
        self.group = self.restarted()
        self.assertEqual(("Empty", 2, None, "consumer"), self.seen())
        self.assertEqual((since, True), (self.group.empty_since_ms, self.group.is_empty))
        self.rows.written[-1].value.current_state_timestamp = -1  # type: ignore[union-attr]
        self.assertIsNone(self.restarted().empty_since_ms)
        self.assertEqual(3, self.members(1)[0].generation)

    def test_a_deleted_group_is_not_restored(self) -> None:
        self.stable(1)
        self.rows.written.append(Row(self.rows.written[-1].key, None))
        self.group = self.restarted()
        self.assertEqual(("Empty", 0, None, ""), self.seen())
        self.assertEqual([], list(self.group.rows()))

    def test_an_oversized_group_shrinks(self) -> None:
        """
        A group with more members than are allowed now rebalances without the surplus.
        """
        joined = self.stable(3)
        self.settings = {"group_max_size": 2}
        self.group = self.restarted()
        self.assertEqual("PreparingRebalance", self.group.state)
        waiting: list[Deferred[JoinResult]] = [self.join(each.member_id) for each in joined[:2]]
        self.assert_refused(ErrorCode.GROUP_MAX_SIZE_REACHED, self.join(joined[2].member_id))
        self.assertEqual([2, 2], [self.successResultOf(each).generation for each in waiting])

    def test_a_restarted_group_stops_without_timers(self) -> None:
        self.stable(2, rebalance_timeout_ms=REBALANCE_MS)
        self.group.stop()
        group = self.restarted()
        self.assertEqual(2, len(self.clock.getDelayedCalls()))
        group.stop()
        self.assertEqual([], self.clock.getDelayedCalls())

    def test_a_new_group_is_empty(self) -> None:
        """
        It has no protocol type, and its time since when it is empty is unknown.
        """
        self.assertEqual(("Empty", 0, None, ""), self.seen())
        self.assertEqual(
            (True, None, GroupType.CLASSIC), (self.group.is_empty, self.group.empty_since_ms, self.group.type)
        )


class FailureTests(GroupTestCase):
    def test_an_unwritable_new_group_refuses_its_first_member(self) -> None:
        self.rows.refuses = UNAVAILABLE
        self.assert_refused(ErrorCode.COORDINATOR_NOT_AVAILABLE, self.join())
        self.assertEqual(0, len(self.group.members))
        self.rows.refuses = None
        self.assertEqual(1, self.members(1)[0].generation)
        self.assertEqual(1, len(self.rows.written))

    def test_a_new_group_whose_write_fails_later(self) -> None:
        """
        Its members are in, and the leader's assignment writes the group.
        """
        self.rows.waits = True
        first = self.join()
        self.rows.settle(UNAVAILABLE)
        self.rows.waits = False
        second = self.join()
        self.wait_for_newcomers()
        self.sync_all([self.successResultOf(each) for each in (first, second)])
        self.assertEqual("Stable", self.restarted().state)

    def test_an_unwritable_assignment_is_not_given_out(self) -> None:
        """
        All members rejoin.
        """
        leader, follower = self.members(2)
        waiting = self.sync(follower)
        self.rows.refuses = UNAVAILABLE
        own = self.sync(leader, {leader.member_id: b"x", follower.member_id: b"y"})
        for each in (waiting, own):
            self.assert_refused(ErrorCode.COORDINATOR_NOT_AVAILABLE, each)
        self.assertEqual("PreparingRebalance", self.group.state)
        self.assertEqual([b"", b""], [each.assignment for each in self.group.members])

    def test_an_assignment_whose_write_fails_later(self) -> None:
        """
        All members rejoin, whatever the error.
        """
        for error, code in ((UNAVAILABLE, UNAVAILABLE.code), (ValueError("a bug"), ErrorCode.UNKNOWN_SERVER_ERROR)):
            self.group = self.made()
            self.rows.waits = False
            leader, follower = self.members(2)
            self.rows.waits = True
            syncing = [self.sync(follower), self.sync(leader)]
            self.rows.settle(error)
            for each in syncing:
                self.assert_refused(code, each)
            self.assertEqual("PreparingRebalance", self.group.state)
        self.assertEqual(1, len(self.flushLoggedErrors(ValueError)))

    def test_assignments_wait_until_committed(self) -> None:
        """
        Meanwhile sessions are kept alive, and commits are refused.
        """
        leader, follower = self.members(2)
        self.rows.waits = True
        syncing = [self.sync(follower), self.sync(leader, {follower.member_id: b"x"})]
        for each in syncing:
            self.assertNoResult(each)
        self.assertEqual([b"", b""], [each.assignment for each in self.group.members])
        self.beat(leader)
        code = ErrorCode.REBALANCE_IN_PROGRESS
        self.assert_raises(code, self.group.check_commit, leader.member_id, None, 1, transactional=False)
        self.rows.settle()
        self.assertEqual(b"x", self.successResultOf(syncing[0]).assignment)
        self.successResultOf(syncing[1])

    def test_late_outcomes_of_earlier_writes_are_ignored(self) -> None:
        for error in (None, UNAVAILABLE):
            self.group = self.made()
            self.rows.waits = False
            leader, follower = self.members(2)
            self.rows.waits = True
            syncing = self.sync(leader, {leader.member_id: b"old"})
            waiting = [self.join(follower.member_id, protocols={"range": b"changed"})]
            self.assert_refused(ErrorCode.REBALANCE_IN_PROGRESS, syncing)
            waiting.append(self.join(leader.member_id))
            joined = [self.successResultOf(each) for each in waiting]
            self.rows.settle(error)
            self.assertEqual(("CompletingRebalance", 2), (self.group.state, self.group.generation))
            self.sync_all(joined)
            self.rows.settle()
            self.assertEqual("Stable", self.group.state)

    def test_a_group_is_empty_even_if_unwritable(self) -> None:
        (one,) = self.stable(1)
        self.rows.refuses = UNAVAILABLE
        self.assertEqual([ErrorCode.NONE], self.leave(one.member_id))
        self.assertEqual("Empty", self.group.state)
        self.assertEqual([self.rows.written[-1]], list(self.group.rows()))

    def test_a_row_is_the_last_until_its_write_fails(self) -> None:
        (one,) = self.members(1)
        before = list(self.group.rows())
        self.rows.waits = True
        self.sync(one).addErrback(lambda _: None)
        self.assertEqual([self.rows.written[-1]], list(self.group.rows()))
        self.rows.settle(UNAVAILABLE)
        self.assertEqual(before, list(self.group.rows()))

    def test_a_failed_earlier_row_changes_nothing(self) -> None:
        """
        The newer row is still the last one.
        """
        (one,) = self.members(1)
        self.rows.waits = True
        self.sync(one).addErrback(lambda _: None)
        self.leave(one.member_id)
        older, _ = self.rows.waiting
        older.errback(UNAVAILABLE)
        self.assertEqual([self.rows.written[-1]], list(self.group.rows()))

    def test_successive_failures_restore_the_last_committed_row(self) -> None:
        (one,) = self.members(1)
        before = list(self.group.rows())
        self.rows.waits = True
        self.sync(one).addErrback(lambda _: None)
        self.leave(one.member_id)
        older, newer = self.rows.waiting
        older.errback(UNAVAILABLE)
        newer.errback(UNAVAILABLE)
        self.assertEqual(before, list(self.group.rows()))


class ReadsTests(GroupTestCase):
    def test_subscribed_topics_are_read(self) -> None:
        """
        Every version of the metadata is understood.
        """
        for version in range(4):
            self.group = self.made()
            self.join(protocols={"range": subscription("orders", "returns", version=version)})
            self.join(protocols={"range": subscription("refunds", version=version)})
            seen = [topic for topic in ("orders", "returns", "refunds", "others") if self.group.reads(topic)]
            self.assertEqual(["orders", "returns", "refunds"], seen, version)

    def test_an_unreadable_subscription_may_mean_any_topic(self) -> None:
        for garbage in (
            b"",
            b"\0",
            b"\0\1",
            b"\0\1\0\0\0\1",
            b"\0\1\xff\xff\xff\xff",
            b"\0\1\x7f\xff\xff\xff" + b"x" * 99,
        ):
            self.group = self.made()
            self.join(protocols={"range": subscription("orders")})
            self.join(protocols={"range": garbage})
            self.assertEqual((True, True), (self.group.reads("orders"), self.group.reads("others")), garbage)

    def test_a_group_without_members_reads_nothing(self) -> None:
        self.assertFalse(self.group.reads("orders"))
        (one,) = self.stable(1)
        self.leave(one.member_id)
        self.assertFalse(self.group.reads("orders"))

    def test_topics_of_other_protocol_types_are_unknown(self) -> None:
        """
        It does not matter what their bytes look like.
        """
        self.join(protocol_type="connect", protocols={"range": subscription("orders")})
        self.assertTrue(self.group.reads("others"))

    def test_subscriptions_are_restored(self) -> None:
        self.stable(1)
        group = self.restarted()
        self.assertEqual((True, False), (group.reads("orders"), group.reads("others")))
