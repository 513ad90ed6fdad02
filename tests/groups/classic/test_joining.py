"""
How members come into a classic group.
"""

from typing import Any

from twisted.internet.defer import Deferred

from kgateway.groups.classic.exchange import Joined, MemberIdRequired
from kgateway.groups.classic.joining import NEW_MEMBER_TIMEOUT_MS
from kgateway.wire.errors import ErrorCode
from tests.groups.classic.clients import DELAY_S, REBALANCE_MS, SESSION_MS, GroupTestCase, subscription

A, B = b"a", b"b"


class InitialTests(GroupTestCase):
    def test_waits(self) -> None:
        """
        The first member of an empty group waits for the delay, and then leads a generation of its own.
        """
        waiting = self.join()
        self.assertEqual("PreparingRebalance", self.group.state)
        self.clock.advance(DELAY_S - 0.1)
        self.assertNoResult(waiting)
        self.clock.advance(0.1)
        joined = self.successResultOf(waiting)
        self.assertEqual((1, "consumer", "range"), (joined.generation, joined.protocol_type, joined.protocol))
        self.assertEqual(joined.member_id, joined.leader)
        self.assertTrue(joined.member_id.startswith("c-"))
        self.assertEqual("CompletingRebalance", self.group.state)

    def test_extended(self) -> None:
        """
        A member that comes during the delay makes for another one.
        """
        first = self.join()
        self.clock.advance(2)
        second = self.join()
        self.clock.advance(1)
        self.assertNoResult(first)
        self.clock.advance(DELAY_S)
        self.assertEqual(1, self.successResultOf(first).generation)
        self.assertEqual(1, self.successResultOf(second).generation)

    def test_not_for_ever(self) -> None:
        """
        However many come, the first one waits no longer than its rebalance timeout.
        """
        first = self.join(rebalance_timeout_ms=10_000)
        for _ in range(9):
            self.clock.advance(1)
            self.join(rebalance_timeout_ms=600_000)
        self.assertNoResult(first)
        self.clock.advance(1)
        self.assertEqual(10, len(self.successResultOf(first).members))

    def test_delay_at_least(self) -> None:
        """
        The delay holds for a member with a shorter rebalance timeout too, and is then not extended.
        """
        first = self.join(rebalance_timeout_ms=1_000)
        self.clock.advance(2)
        self.join()
        self.assertNoResult(first)
        self.clock.advance(1)
        self.successResultOf(first)

    def test_no_delay_later(self) -> None:
        """
        A group that has members waits for these alone.
        """
        (old,) = self.stable(1)
        new = self.join()
        again = self.join(old.member_id)
        self.assertEqual([2, 2], [self.successResultOf(each).generation for each in (new, again)])

    def test_all_leave_meanwhile(self) -> None:
        """
        A group whose only member leaves before the first generation is empty when the delay is over.
        """
        waiting = self.join()
        (member,) = self.group.members
        self.leave(member.id)
        self.assert_refused(ErrorCode.UNKNOWN_MEMBER_ID, waiting)
        self.clock.advance(DELAY_S)
        self.assertEqual(("Empty", 1), (self.group.state, self.group.generation))


class NoDelayTests(GroupTestCase):
    settings = {"group_initial_rebalance_delay_ms": 0}

    def test_next_turn(self) -> None:
        """
        Without a delay the first generation begins in the next turn.
        """
        waiting = self.join()
        self.clock.advance(0)
        self.assertEqual(1, self.successResultOf(waiting).generation)


class MemberIdTests(GroupTestCase):
    def told(self, **more: Any) -> str:
        error = self.assert_refused(ErrorCode.MEMBER_ID_REQUIRED, self.join(takes_member_id=True, **more))
        assert isinstance(error, MemberIdRequired)
        return error.member_id

    def test_required(self) -> None:
        """
        A new member is told its id, and is let in with it.
        """
        member_id = self.told()
        self.assertEqual("Empty", self.group.state)
        waiting = self.join(member_id, takes_member_id=True)
        self.clock.advance(DELAY_S)
        self.assertEqual(member_id, self.successResultOf(waiting).member_id)

    def test_ids_differ(self) -> None:
        """
        No two members are told the same id.
        """
        self.assertNotEqual(self.told(), self.told())

    def test_expires(self) -> None:
        """
        Who does not come within its session timeout is a stranger.
        """
        member_id = self.told()
        self.clock.advance(SESSION_MS / 1000)
        self.assert_refused(ErrorCode.UNKNOWN_MEMBER_ID, self.join(member_id))

    def test_waited_for(self) -> None:
        """
        A rebalance waits for who was told its id, no longer than its session.
        """
        (old,) = self.stable(1)
        self.told(session_timeout_ms=10_000)
        again = self.join(old.member_id)
        self.clock.advance(9.9)
        self.assertNoResult(again)
        self.clock.advance(0.1)
        self.assertEqual(2, self.successResultOf(again).generation)

    def test_waited_for_no_more(self) -> None:
        """
        Who was told its id and joins with it is no more waited for than others.
        """
        (old,) = self.stable(1)
        waiting = self.join(self.told())
        self.successResultOf(self.join(old.member_id))
        self.assertEqual(2, self.successResultOf(waiting).generation)

    def test_leaves(self) -> None:
        """
        Who was told its id and leaves is not waited for, and disturbs nobody.
        """
        (old,) = self.stable(1)
        member_id = self.told()
        again = self.join(old.member_id)
        self.assertEqual([ErrorCode.NONE], self.leave(member_id))
        joined = self.successResultOf(again)
        self.share_out([joined])
        self.leave(self.told())
        self.assertEqual("Stable", self.group.state)
        self.assert_refused(ErrorCode.UNKNOWN_MEMBER_ID, self.join(member_id))

    def test_no_static_member(self) -> None:
        """
        The id was told to a member that is not static: a static one may not use it.
        """
        member_id = self.told()
        self.assert_refused(ErrorCode.INVALID_REQUEST, self.join(member_id, instance_id="i"))

    def test_not_needed_if_static(self) -> None:
        """
        A static member is let in at once; its id begins with that of its instance.
        """
        waiting = self.join(takes_member_id=True, instance_id="i")
        self.clock.advance(DELAY_S)
        self.assertTrue(self.successResultOf(waiting).member_id.startswith("i-"))


class RefusedTests(GroupTestCase):
    def test_unknown(self) -> None:
        """
        A member id that the group has not given is refused.
        """
        self.assert_refused(ErrorCode.UNKNOWN_MEMBER_ID, self.join("stranger"))
        self.assertEqual([], self.rows.written)
        self.stable(1)
        self.assert_refused(ErrorCode.UNKNOWN_MEMBER_ID, self.join("stranger"))
        self.assertEqual("Stable", self.group.state)

    def test_session_timeout(self) -> None:
        """
        A session is as long as the settings permit.
        """
        for timeout_ms in (-1, 0, 5_999, 1_800_001):
            self.assert_refused(ErrorCode.INVALID_SESSION_TIMEOUT, self.join(session_timeout_ms=timeout_ms))
        for timeout_ms in (6_000, 1_800_000):
            self.assertNoResult(self.join(session_timeout_ms=timeout_ms))

    def test_rebalance_timeout(self) -> None:
        """
        The members may have no time at all to join again.
        """
        self.assertNoResult(self.join(rebalance_timeout_ms=0))

    def test_says_nothing(self) -> None:
        """
        A member has to name a protocol, and what kind it is.
        """
        nothing: list[dict[str, Any]] = [{"protocols": {}}, {"protocol_type": ""}]
        for more in nothing:
            self.assert_refused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, self.join(**more))
        self.stable(1)
        for more in nothing:
            self.assert_refused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, self.join(**more))

    def test_inconsistent(self) -> None:
        """
        Who shares no protocol with all members is refused, and disturbs nobody.
        """
        first = self.join(protocols={"range": A, "sticky": A})
        second = self.join(protocols={"sticky": A, "own": A})
        code = ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        self.assert_refused(code, self.join(protocols={"range": A, "own": A}))
        self.assert_refused(code, self.join(protocols={"sticky": A}, protocol_type="connect"))
        self.wait_for_newcomers()
        self.assertEqual(["sticky"] * 2, [self.successResultOf(each).protocol for each in (first, second)])

    def test_a_member_becomes_inconsistent(self) -> None:
        """
        A member may not change to what the others do not speak.
        """
        _one, two = self.stable(2, protocols={"range": A, "sticky": A})
        self.assert_refused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, self.join(two.member_id, protocols={"own": A}))
        self.assertEqual("Stable", self.group.state)

    def test_empty_group_forgets(self) -> None:
        """
        A group without members takes members of any kind.
        """
        (joined,) = self.stable(1)
        self.leave(joined.member_id)
        waiting = self.join(protocol_type="connect", protocols={"compatible": A})
        self.clock.advance(DELAY_S)
        joined = self.successResultOf(waiting)
        self.assertEqual((3, "connect", "compatible"), (joined.generation, joined.protocol_type, joined.protocol))
        self.assertEqual("connect", self.group.protocol_type)


class AgainTests(GroupTestCase):
    def test_follower(self) -> None:
        """
        A follower that speaks as before is told of the generation it is in.
        """
        _leader, follower = self.stable(2)
        again = self.successResultOf(self.join(follower.member_id))
        self.assertEqual(follower, again)
        self.assertEqual(((), "Stable"), (again.members, self.group.state))

    def test_leader(self) -> None:
        """
        A leader that joins a stable group wants to assign anew, so all members join.
        """
        leader, follower = self.stable(2)
        waiting = self.join(leader.member_id)
        self.assertEqual("PreparingRebalance", self.group.state)
        self.join(follower.member_id)
        self.assertEqual(2, self.successResultOf(waiting).generation)

    def test_changed(self) -> None:
        """
        A member that speaks otherwise makes all members join, in a stable group and before.
        """
        leader, follower = self.members(2)
        for expected, topic in ((2, "returns"), (3, "refunds")):
            waiting = self.join(follower.member_id, protocols={"range": subscription(topic)})
            self.assertEqual("PreparingRebalance", self.group.state)
            told = self.successResultOf(self.join(leader.member_id))
            self.assertEqual(expected, self.successResultOf(waiting).generation)
            self.assertIn(subscription(topic), [listed.metadata for listed in told.members])
            self.share_out(
                [told, self.successResultOf(self.join(follower.member_id, protocols={"range": subscription(topic)}))]
            )
            self.assertEqual("Stable", self.group.state)

    def test_answer_lost(self) -> None:
        """
        A member that joins again before the leader has assigned is told the same again, the leader of all members.
        """
        leader, follower = self.members(2)
        self.assertEqual(leader, self.successResultOf(self.join(leader.member_id)))
        self.assertEqual(2, len(leader.members))
        self.assertEqual(follower, self.successResultOf(self.join(follower.member_id)))

    def test_asks_twice(self) -> None:
        """
        Of two joins of one member that wait, the first ends.
        """
        (old,) = self.stable(1)
        new = self.join()
        self.assert_refused(ErrorCode.UNKNOWN_MEMBER_ID, self.join("stranger"))
        (_, member) = self.group.members
        again = self.join(member.id)
        self.assert_refused(ErrorCode.REBALANCE_IN_PROGRESS, new)
        self.successResultOf(self.join(old.member_id))
        self.assertEqual(member.id, self.successResultOf(again).member_id)

    def test_timeouts_change(self) -> None:
        """
        The timeouts are those of the last join.
        """
        (old,) = self.stable(1)
        self.join(old.member_id, session_timeout_ms=7_000, rebalance_timeout_ms=8_000)
        (member,) = self.group.members
        self.assertEqual((7_000, 8_000), (member.session_timeout_ms, member.rebalance_timeout_ms))
        self.clock.advance(7)
        self.assertEqual("Empty", self.group.state)

    def test_connection_gone(self) -> None:
        """
        Who waits no longer for its answer is in the generation all the same, until its session ends.
        """
        (old,) = self.stable(1)
        new = self.join()
        new.addErrback(lambda _: None)
        new.cancel()
        self.assertEqual(2, len(self.successResultOf(self.join(old.member_id)).members))


class VoteTests(GroupTestCase):
    def chosen(self, *preferences: str) -> str:
        waiting = [self.join(protocols={name: name.encode() for name in each.split()}) for each in preferences]
        self.wait_for_newcomers()
        joined = [self.successResultOf(each) for each in waiting]
        self.assertEqual(1, len({each.protocol for each in joined}))
        self.assertEqual({joined[0].protocol.encode()}, {listed.metadata for listed in joined[0].members})
        return joined[0].protocol

    def test_majority(self) -> None:
        """
        The protocol that most members prefer is chosen.
        """
        self.assertEqual("b", self.chosen("a b", "b a", "b a"))

    def test_common(self) -> None:
        """
        Only what all members speak is chosen.
        """
        self.assertEqual("c", self.chosen("a b c", "a b c", "b c", "c a"))

    def test_votes_go_to_common(self) -> None:
        """
        A member whose favourite is not spoken by all votes for the next one.
        """
        self.assertEqual("b", self.chosen("x b a", "x b a", "a b"))

    def test_the_same_name_twice(self) -> None:
        """
        A protocol that is named twice counts once, with what was said first.
        """
        twice = self.asking()
        offered = type(twice.protocols)([("range", A), ("range", B)])
        self.assertEqual((1, A), (len(offered), offered.metadata("range")))


class SizeTests(GroupTestCase):
    settings = {"group_max_size": 2}

    def test_full(self) -> None:
        """
        A full group takes no new member, and keeps those it has.
        """
        _one, two = self.stable(2)
        self.assert_refused(ErrorCode.GROUP_MAX_SIZE_REACHED, self.join())
        self.assertEqual("Stable", self.group.state)
        self.assertEqual(two, self.successResultOf(self.join(two.member_id)))

    def test_full_while_joining(self) -> None:
        """
        As many are let in as there is room for while members join.
        """
        waiting = [self.join() for _ in range(3)]
        self.assert_refused(ErrorCode.GROUP_MAX_SIZE_REACHED, waiting.pop())
        self.wait_for_newcomers()
        self.assertEqual([1, 1], [self.successResultOf(each).generation for each in waiting])

    def test_no_room_for_who_was_told_its_id(self) -> None:
        """
        Who was told its id and finds no place is not waited for.
        """
        told = self.assert_refused(ErrorCode.MEMBER_ID_REQUIRED, self.join(takes_member_id=True))
        assert isinstance(told, MemberIdRequired)
        joined = self.members(2)
        self.assert_refused(ErrorCode.GROUP_MAX_SIZE_REACHED, self.join(told.member_id))
        waiting = [self.join(each.member_id, protocols={"range": b"changed"}) for each in joined]
        self.assertEqual([2, 2], [self.successResultOf(each).generation for each in waiting])

    def test_late_member_loses_its_place(self) -> None:
        """
        A member that joins again after the group has filled up is out, and not waited for.
        """
        one, two = self.stable(2)
        self.group.rebalance("a test")
        waiting: list[Deferred[Joined]] = [self.join(one.member_id), self.join()]
        self.assert_refused(ErrorCode.GROUP_MAX_SIZE_REACHED, self.join(two.member_id))
        self.assertEqual([2, 2], [self.successResultOf(each).generation for each in waiting])

    def test_static_comes_back(self) -> None:
        """
        A static member that comes back to a full group takes its own place.
        """
        one = self.join(instance_id="i")
        self.join()
        self.wait_for_newcomers()
        leader = self.successResultOf(one)
        self.sync(leader)
        self.assertEqual(1, self.successResultOf(self.join(instance_id="i")).generation)


class NewMemberTests(GroupTestCase):
    def test_gives_up(self) -> None:
        """
        A new member that waits for too long is let go, for it may have gone itself; heartbeats it cannot send.
        """
        (old,) = self.stable(1, rebalance_timeout_ms=2 * NEW_MEMBER_TIMEOUT_MS)
        waiting = self.join(session_timeout_ms=SESSION_MS)
        self.advance(NEW_MEMBER_TIMEOUT_MS / 1000 - 1, [old])
        self.assertNoResult(waiting)
        self.advance(1, [old])
        self.assert_refused(ErrorCode.UNKNOWN_MEMBER_ID, waiting)

    def test_first_session(self) -> None:
        """
        With the first generation the session of a new member begins.
        """
        self.stable(1, rebalance_timeout_ms=REBALANCE_MS)
        self.clock.advance(SESSION_MS / 1000 - 0.1)
        self.assertEqual("Stable", self.group.state)
        self.clock.advance(0.1)
        self.assertEqual("Empty", self.group.state)
