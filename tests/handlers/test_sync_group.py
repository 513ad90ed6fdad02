"""
SyncGroup.
"""

from kgateway.groups.coordinator import GroupCoordinator
from kgateway.handlers.sync_group import sync_group
from kgateway.messages.sync_group import SyncGroupRequest
from kgateway.wire.errors import ErrorCode, KafkaError
from tests.handlers.group_members import DELAY_S, MembersTestCase
from tests.serving import Denying, Serving

VERSIONS = range(6)


class SyncGroupTests(MembersTestCase):
    def test_all_versions_are_served(self) -> None:
        self.assertEqual(VERSIONS, sync_group.versions)

    def test_a_leader_assigns(self) -> None:
        """
        It gets its own assignment.
        """
        for version in VERSIONS:
            self.serving = Serving()
            synced = self.successResultOf(self.sync(self.joined(), version))
            self.assertEqual((ErrorCode.NONE, b"assigned"), (synced.error_code, synced.assignment), version)
            named = ("consumer", "range") if version >= 5 else (None, None)
            self.assertEqual(named, (synced.protocol_type, synced.protocol_name), version)

    def test_a_follower_waits_for_the_leader(self) -> None:
        one, two = self.join(0), self.join(0)
        for _ in range(2):
            self.serving.clock.advance(DELAY_S)
        leader, follower = self.successResultOf(one), self.successResultOf(two)
        for version in VERSIONS:
            waiting = self.sync(follower, version)
            self.assertNoResult(waiting)
        self.sync(leader)
        self.assertEqual(b"assigned", self.successResultOf(waiting).assignment)

    def test_an_oversized_assignment_is_refused(self) -> None:
        """
        As in Kafka, the leader gets the error and the members rejoin.
        """
        joined = self.joined()
        large = SyncGroupRequest.Assignment(member_id=joined.member_id, assignment=bytes(3 << 20))
        synced = self.successResultOf(self.sync(joined, assignments=[large]))
        self.assertEqual(ErrorCode.UNKNOWN_SERVER_ERROR, synced.error_code)
        self.assertEqual("PreparingRebalance", self.serving.parts.service(GroupCoordinator).find("g").state)

    def test_static_members_are_fenced(self) -> None:
        """
        Another member may have taken the place.
        """
        old = self.stable(group_instance_id="i")
        self.successResultOf(self.join(group_instance_id="i"))
        for version in range(3, 6):
            error = self.assertRaises(KafkaError, self.sync, old, version, group_instance_id="i")
            self.assertEqual(ErrorCode.FENCED_INSTANCE_ID, error.code, version)

    def test_unknown_members_are_refused(self) -> None:
        """
        So are other generations and unknown groups.
        """
        joined = self.joined()
        refused = (
            (ErrorCode.UNKNOWN_MEMBER_ID, {"member_id": "stranger"}),
            (ErrorCode.UNKNOWN_MEMBER_ID, {"group_id": "another"}),
            (ErrorCode.ILLEGAL_GENERATION, {"generation_id": 7}),
            (ErrorCode.INVALID_GROUP_ID, {"group_id": ""}),
        )
        for version in VERSIONS:
            for code, more in refused:
                error = self.assertRaises(KafkaError, self.sync, joined, version, **more)
                self.assertEqual(code, error.code, version)

    def test_the_protocol_is_checked(self) -> None:
        """
        From v5 on a member names the protocol, which must be the group's.
        """
        joined = self.joined()
        for more in ({"protocol_type": None}, {"protocol_name": None}, {"protocol_name": "x"}, {"protocol_type": "x"}):
            error = self.assertRaises(KafkaError, self.sync, joined, 5, **more)
            self.assertEqual(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, error.code, more)

    def test_later_refusals_have_a_reason(self) -> None:
        """
        The member has waited for the response.
        """
        one, two = self.join(0), self.join(0)
        for _ in range(2):
            self.serving.clock.advance(DELAY_S)
        self.successResultOf(one)
        waiting = self.sync(self.successResultOf(two))
        self.serving.parts.service(GroupCoordinator).stop()
        answer = self.successResultOf(waiting)
        self.assertEqual((ErrorCode.NOT_COORDINATOR, b""), (answer.error_code, answer.assignment))
        self.assertEqual([(ErrorCode.NOT_COORDINATOR, "g")], self.reasons())

    def test_a_cancelled_wait_sends_the_member_to_another_coordinator(self) -> None:
        one, two = self.join(0), self.join(0)
        for _ in range(2):
            self.serving.clock.advance(DELAY_S)
        self.successResultOf(one)
        waiting = self.sync(self.successResultOf(two))
        waiting.cancel()
        self.assertEqual(ErrorCode.NOT_COORDINATOR, self.successResultOf(waiting).error_code)
        self.assertTrue(sync_group.polls)

    def test_permission_is_needed(self) -> None:
        joined = self.joined()
        self.serving.parts.authorizer = Denying()
        error = self.assertRaises(KafkaError, self.sync, joined)
        self.assertEqual(ErrorCode.GROUP_AUTHORIZATION_FAILED, error.code)
