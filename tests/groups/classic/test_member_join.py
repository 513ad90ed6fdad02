"""
How members join a classic group.
"""

from typing import Any

from twisted.internet.defer import Deferred

from kgateway.groups.classic.member_join import NEW_MEMBER_TIMEOUT_MS
from kgateway.groups.classic.requests import JoinResult, MemberIdRequired
from kgateway.wire.errors import ErrorCode
from tests.groups.classic.clients import DELAY_S, REBALANCE_MS, SESSION_MS, GroupTestCase, subscription

A, B = b"a", b"b"


class InitialTests(GroupTestCase):
    def test_the_first_member_waits_for_the_delay(self) -> None:
        """
        It then leads a generation of its own.
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

    def test_another_member_extends_the_delay(self) -> None:
        first = self.join()
        self.clock.advance(2)
        second = self.join()
        self.clock.advance(1)
        self.assertNoResult(first)
        self.clock.advance(DELAY_S)
        self.assertEqual(1, self.successResultOf(first).generation)
        self.assertEqual(1, self.successResultOf(second).generation)

    def test_the_delay_ends_with_the_rebalance_timeout(self) -> None:
        """
        However many members join, the first one waits no longer.
        """
        first = self.join(rebalance_timeout_ms=10_000)
        for _ in range(9):
            self.clock.advance(1)
            self.join(rebalance_timeout_ms=600_000)
        self.assertNoResult(first)
        self.clock.advance(1)
        self.assertEqual(10, len(self.successResultOf(first).members))

    def test_a_short_rebalance_timeout_does_not_shorten_the_delay(self) -> None:
        """
        It is not extended either.
        """
        first = self.join(rebalance_timeout_ms=1_000)
        self.clock.advance(2)
        self.join()
        self.assertNoResult(first)
        self.clock.advance(1)
        self.successResultOf(first)

    def test_a_group_with_members_has_no_delay(self) -> None:
        """
        It waits for its members only.
        """
        (old,) = self.stable(1)
        new = self.join()
        again = self.join(old.member_id)
        self.assertEqual([2, 2], [self.successResultOf(each).generation for each in (new, again)])

    def test_a_group_left_during_the_delay_is_empty(self) -> None:
        waiting = self.join()
        (member,) = self.group.members
        self.leave(member.id)
        self.assert_refused(ErrorCode.UNKNOWN_MEMBER_ID, waiting)
        self.clock.advance(DELAY_S)
        self.assertEqual(("Empty", 1), (self.group.state, self.group.generation))


class NoDelayTests(GroupTestCase):
    settings = {"group_initial_rebalance_delay_ms": 0}

    def test_without_delay_the_generation_begins_in_the_next_turn(self) -> None:
        waiting = self.join()
        self.clock.advance(0)
        self.assertEqual(1, self.successResultOf(waiting).generation)


class MemberIdTests(GroupTestCase):
    def told(self, **more: Any) -> str:
        error = self.assert_refused(ErrorCode.MEMBER_ID_REQUIRED, self.join(takes_member_id=True, **more))
        assert isinstance(error, MemberIdRequired)
        return error.member_id

    def test_a_member_id_is_required(self) -> None:
        """
        A new member is given its id and joins with it.
        """
        member_id = self.told()
        self.assertEqual("Empty", self.group.state)
        waiting = self.join(member_id, takes_member_id=True)
        self.clock.advance(DELAY_S)
        self.assertEqual(member_id, self.successResultOf(waiting).member_id)

    def test_member_ids_differ(self) -> None:
        self.assertNotEqual(self.told(), self.told())

    def test_an_unused_member_id_expires(self) -> None:
        """
        It is unknown after the session timeout.
        """
        member_id = self.told()
        self.clock.advance(SESSION_MS / 1000)
        self.assert_refused(ErrorCode.UNKNOWN_MEMBER_ID, self.join(member_id))

    def test_a_rebalance_waits_for_pending_members(self) -> None:
        """
        It waits no longer than their session.
        """
        (old,) = self.stable(1)
        self.told(session_timeout_ms=10_000)
        again = self.join(old.member_id)
        self.clock.advance(9.9)
        self.assertNoResult(again)
        self.clock.advance(0.1)
        self.assertEqual(2, self.successResultOf(again).generation)

    def test_a_pending_member_that_joins_is_a_normal_member(self) -> None:
        """
        The rebalance waits for it as for all others.
        """
        (old,) = self.stable(1)
        waiting = self.join(self.told())
        self.successResultOf(self.join(old.member_id))
        self.assertEqual(2, self.successResultOf(waiting).generation)

    def test_a_pending_member_may_leave(self) -> None:
        """
        The rebalance does not wait for it, and nobody is disturbed.
        """
        (old,) = self.stable(1)
        member_id = self.told()
        again = self.join(old.member_id)
        self.assertEqual([ErrorCode.NONE], self.leave(member_id))
        joined = self.successResultOf(again)
        self.sync_all([joined])
        self.leave(self.told())
        self.assertEqual("Stable", self.group.state)
        self.assert_refused(ErrorCode.UNKNOWN_MEMBER_ID, self.join(member_id))

    def test_static_members_cannot_use_a_dynamic_id(self) -> None:
        member_id = self.told()
        self.assert_refused(ErrorCode.INVALID_REQUEST, self.join(member_id, instance_id="i"))

    def test_static_members_need_no_id_first(self) -> None:
        """
        A static member joins at once, and its id begins with its instance id.
        """
        waiting = self.join(takes_member_id=True, instance_id="i")
        self.clock.advance(DELAY_S)
        self.assertTrue(self.successResultOf(waiting).member_id.startswith("i-"))


class RefusedTests(GroupTestCase):
    def test_unknown_member_ids_are_refused(self) -> None:
        self.assert_refused(ErrorCode.UNKNOWN_MEMBER_ID, self.join("stranger"))
        self.assertEqual([], self.rows.written)
        self.stable(1)
        self.assert_refused(ErrorCode.UNKNOWN_MEMBER_ID, self.join("stranger"))
        self.assertEqual("Stable", self.group.state)

    def test_session_timeout_is_limited_by_the_settings(self) -> None:
        for timeout_ms in (-1, 0, 5_999, 1_800_001):
            self.assert_refused(ErrorCode.INVALID_SESSION_TIMEOUT, self.join(session_timeout_ms=timeout_ms))
        for timeout_ms in (6_000, 1_800_000):
            self.assertNoResult(self.join(session_timeout_ms=timeout_ms))

    def test_rebalance_timeout_may_be_zero(self) -> None:
        self.assertNoResult(self.join(rebalance_timeout_ms=0))

    def test_protocol_and_type_are_required(self) -> None:
        nothing: list[dict[str, Any]] = [{"protocols": {}}, {"protocol_type": ""}]
        for more in nothing:
            self.assert_refused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, self.join(**more))
        self.stable(1)
        for more in nothing:
            self.assert_refused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, self.join(**more))

    def test_inconsistent_protocols_are_refused(self) -> None:
        """
        The other members are not disturbed.
        """
        first = self.join(protocols={"range": A, "sticky": A})
        second = self.join(protocols={"sticky": A, "own": A})
        code = ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        self.assert_refused(code, self.join(protocols={"range": A, "own": A}))
        self.assert_refused(code, self.join(protocols={"sticky": A}, protocol_type="connect"))
        self.wait_for_newcomers()
        self.assertEqual(["sticky"] * 2, [self.successResultOf(each).protocol for each in (first, second)])

    def test_members_cannot_change_to_an_inconsistent_protocol(self) -> None:
        _one, two = self.stable(2, protocols={"range": A, "sticky": A})
        self.assert_refused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, self.join(two.member_id, protocols={"own": A}))
        self.assertEqual("Stable", self.group.state)

    def test_empty_groups_accept_any_protocol_type(self) -> None:
        (joined,) = self.stable(1)
        self.leave(joined.member_id)
        waiting = self.join(protocol_type="connect", protocols={"compatible": A})
        self.clock.advance(DELAY_S)
        joined = self.successResultOf(waiting)
        self.assertEqual((3, "connect", "compatible"), (joined.generation, joined.protocol_type, joined.protocol))
        self.assertEqual("connect", self.group.protocol_type)


class AgainTests(GroupTestCase):
    def test_an_unchanged_follower_gets_its_generation(self) -> None:
        """
        Joining again causes no rebalance.
        """
        _leader, follower = self.stable(2)
        again = self.successResultOf(self.join(follower.member_id))
        self.assertEqual(follower, again)
        self.assertEqual(((), "Stable"), (again.members, self.group.state))

    def test_a_leader_that_joins_again_starts_a_rebalance(self) -> None:
        leader, follower = self.stable(2)
        waiting = self.join(leader.member_id)
        self.assertEqual("PreparingRebalance", self.group.state)
        self.join(follower.member_id)
        self.assertEqual(2, self.successResultOf(waiting).generation)

    def test_changed_protocols_start_a_rebalance(self) -> None:
        """
        This holds in a stable group and before.
        """
        leader, follower = self.members(2)
        for expected, topic in ((2, "returns"), (3, "refunds")):
            waiting = self.join(follower.member_id, protocols={"range": subscription(topic)})
            self.assertEqual("PreparingRebalance", self.group.state)
            told = self.successResultOf(self.join(leader.member_id))
            self.assertEqual(expected, self.successResultOf(waiting).generation)
            self.assertIn(subscription(topic), [listed.metadata for listed in told.members])
            self.sync_all(
                [told, self.successResultOf(self.join(follower.member_id, protocols={"range": subscription(topic)}))]
            )
            self.assertEqual("Stable", self.group.state)

    def test_a_lost_response_is_repeated(self) -> None:
        """
        Until the leader has assigned, another join gets the same response, the leader's with all members.
        """
        leader, follower = self.members(2)
        self.assertEqual(leader, self.successResultOf(self.join(leader.member_id)))
        self.assertEqual(2, len(leader.members))
        self.assertEqual(follower, self.successResultOf(self.join(follower.member_id)))

    def test_a_second_waiting_join_refuses_the_first(self) -> None:
        (old,) = self.stable(1)
        new = self.join()
        self.assert_refused(ErrorCode.UNKNOWN_MEMBER_ID, self.join("stranger"))
        (_, member) = self.group.members
        again = self.join(member.id)
        self.assert_refused(ErrorCode.REBALANCE_IN_PROGRESS, new)
        self.successResultOf(self.join(old.member_id))
        self.assertEqual(member.id, self.successResultOf(again).member_id)

    def test_timeouts_of_the_last_join_apply(self) -> None:
        (old,) = self.stable(1)
        self.join(old.member_id, session_timeout_ms=7_000, rebalance_timeout_ms=8_000)
        (member,) = self.group.members
        self.assertEqual((7_000, 8_000), (member.session_timeout_ms, member.rebalance_timeout_ms))
        self.clock.advance(7)
        self.assertEqual("Empty", self.group.state)

    def test_a_disconnected_member_is_in_the_generation(self) -> None:
        """
        It is removed when its session expires.
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

    def test_the_majority_chooses_the_protocol(self) -> None:
        self.assertEqual("b", self.chosen("a b", "b a", "b a"))

    def test_only_common_protocols_are_chosen(self) -> None:
        self.assertEqual("c", self.chosen("a b c", "a b c", "b c", "c a"))

    def test_votes_go_to_common_protocols(self) -> None:
        """
        A member votes for its next protocol if its favourite is not common.
        """
        self.assertEqual("b", self.chosen("x b a", "x b a", "a b"))

    def test_a_repeated_protocol_counts_once(self) -> None:
        """
        Its first metadata is used.
        """
        twice = self.asking()
        offered = type(twice.protocols)([("range", A), ("range", B)])
        self.assertEqual((1, A), (len(offered), offered.metadata("range")))


class SizeTests(GroupTestCase):
    settings = {"group_max_size": 2}

    def test_a_full_group_refuses_new_members(self) -> None:
        _one, two = self.stable(2)
        self.assert_refused(ErrorCode.GROUP_MAX_SIZE_REACHED, self.join())
        self.assertEqual("Stable", self.group.state)
        self.assertEqual(two, self.successResultOf(self.join(two.member_id)))

    def test_a_group_fills_up_while_joining(self) -> None:
        """
        As many members get in as there is room for.
        """
        waiting = [self.join() for _ in range(3)]
        self.assert_refused(ErrorCode.GROUP_MAX_SIZE_REACHED, waiting.pop())
        self.wait_for_newcomers()
        self.assertEqual([1, 1], [self.successResultOf(each).generation for each in waiting])

    def test_a_rebalance_does_not_wait_for_a_member_without_room(self) -> None:
        told = self.assert_refused(ErrorCode.MEMBER_ID_REQUIRED, self.join(takes_member_id=True))
        assert isinstance(told, MemberIdRequired)
        joined = self.members(2)
        self.assert_refused(ErrorCode.GROUP_MAX_SIZE_REACHED, self.join(told.member_id))
        waiting = [self.join(each.member_id, protocols={"range": b"changed"}) for each in joined]
        self.assertEqual([2, 2], [self.successResultOf(each).generation for each in waiting])

    def test_a_late_member_loses_its_place(self) -> None:
        """
        If the group has filled up, a member that joins again is removed, and the rebalance does not wait for it.
        """
        one, two = self.stable(2)
        self.group.rebalance("a test")
        waiting: list[Deferred[JoinResult]] = [self.join(one.member_id), self.join()]
        self.assert_refused(ErrorCode.GROUP_MAX_SIZE_REACHED, self.join(two.member_id))
        self.assertEqual([2, 2], [self.successResultOf(each).generation for each in waiting])

    def test_a_returning_static_member_keeps_its_place(self) -> None:
        """
        The group may be full.
        """
        one = self.join(instance_id="i")
        self.join()
        self.wait_for_newcomers()
        leader = self.successResultOf(one)
        self.sync(leader)
        self.assertEqual(1, self.successResultOf(self.join(instance_id="i")).generation)


class NewMemberTests(GroupTestCase):
    def test_a_new_member_expires(self) -> None:
        """
        It cannot send heartbeats yet, so after a limit it is taken to have left.
        """
        (old,) = self.stable(1, rebalance_timeout_ms=2 * NEW_MEMBER_TIMEOUT_MS)
        waiting = self.join(session_timeout_ms=SESSION_MS)
        self.advance(NEW_MEMBER_TIMEOUT_MS / 1000 - 1, [old])
        self.assertNoResult(waiting)
        self.advance(1, [old])
        self.assert_refused(ErrorCode.UNKNOWN_MEMBER_ID, waiting)

    def test_the_first_session_begins_with_the_first_generation(self) -> None:
        self.stable(1, rebalance_timeout_ms=REBALANCE_MS)
        self.clock.advance(SESSION_MS / 1000 - 0.1)
        self.assertEqual("Stable", self.group.state)
        self.clock.advance(0.1)
        self.assertEqual("Empty", self.group.state)
