"""
What of a classic group is written, and comes back after a restart.
"""

from twisted.internet.defer import Deferred

from kgateway.groups.classic.exchange import Joined
from kgateway.groups.group import GroupType
from kgateway.groups.rows import Row
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

    def test_birth(self) -> None:
        """
        With its first member a group is written, without a generation.
        """
        self.join()
        expected = GroupMetadataValue(
            protocol_type="", generation=0, protocol=None, leader=None, current_state_timestamp=START_MS, members=[]
        )
        self.assertEqual(expected, self.last())
        self.join()
        self.assertEqual(1, len(self.rows.written))

    def test_generation(self) -> None:
        """
        When the leader has assigned, all is written: members, what they said in the chosen protocol, and assignments.
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

    def test_empty(self) -> None:
        """
        That a group has become empty is written, with its kind and since when.
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

    def test_rows(self) -> None:
        """
        The last row written is all that is true of a group; one that has none has never been.
        """
        self.assertEqual([], list(self.group.rows()))
        self.stable(2)
        self.assertEqual([self.rows.written[-1]], list(self.group.rows()))


class RestartTests(GroupTestCase):
    def test_goes_on(self) -> None:
        """
        After a restart the members carry on, in the same generation and with the same assignments.
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

    def test_sessions_begin_anew(self) -> None:
        """
        The sessions of members begin with the restart; who does not come back within it is out.
        """
        one, _ = self.stable(2)
        self.clock.advance(SESSION_MS / 1000 - 1)
        self.group = self.restarted()
        self.advance(SESSION_MS / 1000 - 1, [one])
        self.assertEqual(2, len(self.group.members))
        self.advance(1, [one])
        self.assertEqual([one.member_id], [each.id for each in self.group.members])

    def test_between_generations(self) -> None:
        """
        A restart while members join or sync brings back the last generation that was written.
        """
        joined = self.stable(2)
        waiting = self.join()
        for each in joined:
            self.join(each.member_id)
        self.successResultOf(waiting)
        self.group = self.restarted()
        self.assertEqual(("Stable", 1, "range", "consumer"), self.seen())
        self.assertEqual([each.member_id for each in joined], [each.id for each in self.group.members])

    def test_timeouts(self) -> None:
        """
        The timeouts of members last; where the rebalance timeout was not written, that of the session serves.
        """
        self.stable(1, rebalance_timeout_ms=70_000, session_timeout_ms=8_000)
        (member,) = self.restarted().members
        self.assertEqual((8_000, 70_000), (member.session_timeout_ms, member.rebalance_timeout_ms))
        row = self.rows.written[-1]
        row.value.members[0].rebalance_timeout = -1  # type: ignore[union-attr]
        (member,) = self.restarted().members
        self.assertEqual(8_000, member.rebalance_timeout_ms)

    def test_leader_unknown(self) -> None:
        """
        Where the leader was not written, a member leads.
        """
        one, _ = self.stable(2)
        self.rows.written[-1].value.leader = "nobody"  # type: ignore[union-attr]
        self.assertEqual(one.member_id, self.restarted().members.leader)

    def test_empty(self) -> None:
        """
        A group without members counts its generations on; since when it has none is known, or is not.
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

    def test_deleted(self) -> None:
        """
        Of a group that was deleted nothing is left.
        """
        self.stable(1)
        self.rows.written.append(Row(self.rows.written[-1].key, None))
        self.group = self.restarted()
        self.assertEqual(("Empty", 0, None, ""), self.seen())
        self.assertEqual([], list(self.group.rows()))

    def test_too_big(self) -> None:
        """
        A group that has more members than may be now rebalances, and shrinks.
        """
        joined = self.stable(3)
        self.settings = {"group_max_size": 2}
        self.group = self.restarted()
        self.assertEqual("PreparingRebalance", self.group.state)
        waiting: list[Deferred[Joined]] = [self.join(each.member_id) for each in joined[:2]]
        self.assert_refused(ErrorCode.GROUP_MAX_SIZE_REACHED, self.join(joined[2].member_id))
        self.assertEqual([2, 2], [self.successResultOf(each).generation for each in waiting])

    def test_stops(self) -> None:
        """
        A restarted group leaves no timers when it stops.
        """
        self.stable(2, rebalance_timeout_ms=REBALANCE_MS)
        self.group.stop()
        group = self.restarted()
        self.assertEqual(2, len(self.clock.getDelayedCalls()))
        group.stop()
        self.assertEqual([], self.clock.getDelayedCalls())

    def test_new(self) -> None:
        """
        A new group is empty, nobody can tell since when, and of no kind.
        """
        self.assertEqual(("Empty", 0, None, ""), self.seen())
        self.assertEqual(
            (True, None, GroupType.CLASSIC), (self.group.is_empty, self.group.empty_since_ms, self.group.type)
        )


class FailureTests(GroupTestCase):
    def test_birth(self) -> None:
        """
        Where a new group cannot be written, its first member is refused.
        """
        self.rows.refuses = UNAVAILABLE
        self.assert_refused(ErrorCode.COORDINATOR_NOT_AVAILABLE, self.join())
        self.assertEqual(0, len(self.group.members))
        self.rows.refuses = None
        self.assertEqual(1, self.members(1)[0].generation)
        self.assertEqual(1, len(self.rows.written))

    def test_birth_later(self) -> None:
        """
        Where that turns out later, the members are in, and the group is written when the leader has assigned.
        """
        self.rows.waits = True
        first = self.join()
        self.rows.settle(UNAVAILABLE)
        self.rows.waits = False
        second = self.join()
        self.wait_for_newcomers()
        self.share_out([self.successResultOf(each) for each in (first, second)])
        self.assertEqual("Stable", self.restarted().state)

    def test_assignment(self) -> None:
        """
        Where the assignment cannot be written, nobody gets it, and all join again.
        """
        leader, follower = self.members(2)
        waiting = self.sync(follower)
        self.rows.refuses = UNAVAILABLE
        own = self.sync(leader, {leader.member_id: b"x", follower.member_id: b"y"})
        for each in (waiting, own):
            self.assert_refused(ErrorCode.COORDINATOR_NOT_AVAILABLE, each)
        self.assertEqual("PreparingRebalance", self.group.state)
        self.assertEqual([b"", b""], [each.assignment for each in self.group.members])

    def test_assignment_later(self) -> None:
        """
        The same where that turns out later, and also where nobody foresaw it.
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

    def test_answer_waits(self) -> None:
        """
        Nobody sees an assignment before it is safe; members live meanwhile and may not commit.
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

    def test_overtaken(self) -> None:
        """
        An assignment that is written too late, or fails too late, for another generation has begun, changes nothing.
        """
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
            self.share_out(joined)
            self.rows.settle()
            self.assertEqual("Stable", self.group.state)

    def test_empty(self) -> None:
        """
        Where it cannot be written that a group is empty, it is all the same.
        """
        (one,) = self.stable(1)
        self.rows.refuses = UNAVAILABLE
        self.assertEqual([ErrorCode.NONE], self.leave(one.member_id))
        self.assertEqual("Empty", self.group.state)
        self.assertEqual([self.rows.written[-1]], list(self.group.rows()))

    def test_last_row(self) -> None:
        """
        A row counts from when it is handed over, and no more when that has failed.
        """
        (one,) = self.members(1)
        before = list(self.group.rows())
        self.rows.waits = True
        self.sync(one).addErrback(lambda _: None)
        self.assertEqual([self.rows.written[-1]], list(self.group.rows()))
        self.rows.settle(UNAVAILABLE)
        self.assertEqual(before, list(self.group.rows()))

    def test_last_row_is_not_the_one_that_failed(self) -> None:
        """
        A row that fails when a newer one is on its way leaves that the last one.
        """
        (one,) = self.members(1)
        self.rows.waits = True
        self.sync(one).addErrback(lambda _: None)
        self.leave(one.member_id)
        older, _ = self.rows.waiting
        older.errback(UNAVAILABLE)
        self.assertEqual([self.rows.written[-1]], list(self.group.rows()))

    def test_rows_that_fail_one_after_the_other(self) -> None:
        """
        What was safe before them is the last one again.
        """
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
    def test_topics(self) -> None:
        """
        Consumers read the topics they have subscribed to, in whatever version they say so.
        """
        for version in range(4):
            self.group = self.made()
            self.join(protocols={"range": subscription("orders", "returns", version=version)})
            self.join(protocols={"range": subscription("refunds", version=version)})
            seen = [topic for topic in ("orders", "returns", "refunds", "others") if self.group.reads(topic)]
            self.assertEqual(["orders", "returns", "refunds"], seen, version)

    def test_garbage(self) -> None:
        """
        Where a subscription cannot be read, any topic may be meant.
        """
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

    def test_empty(self) -> None:
        """
        A group without members reads nothing.
        """
        self.assertFalse(self.group.reads("orders"))
        (one,) = self.stable(1)
        self.leave(one.member_id)
        self.assertFalse(self.group.reads("orders"))

    def test_other_kinds(self) -> None:
        """
        What members read that are not consumers nobody knows, whatever their bytes look like.
        """
        self.join(protocol_type="connect", protocols={"range": subscription("orders")})
        self.assertTrue(self.group.reads("others"))

    def test_after_restart(self) -> None:
        """
        After a restart it is known as before.
        """
        self.stable(1)
        group = self.restarted()
        self.assertEqual((True, False), (group.reads("orders"), group.reads("others")))
