"""
SyncGroup.
"""

from handlers.sync_group import sync_group
from kgateway.groups.groups import Groups
from kgateway.messages.sync_group import SyncGroupRequest
from kgateway.wire.errors import ErrorCode, KafkaError
from tests.handlers.grouping import DELAY_S, MembersTestCase
from tests.serving import Denying, Serving

VERSIONS = range(6)


class SyncGroupTests(MembersTestCase):
    def test_versions(self) -> None:
        """
        All versions are served.
        """
        self.assertEqual(VERSIONS, sync_group.versions)

    def test_leader(self) -> None:
        """
        A leader assigns, and is given what it assigned to itself.
        """
        for version in VERSIONS:
            self.serving = Serving()
            synced = self.successResultOf(self.sync(self.joined(), version))
            self.assertEqual((ErrorCode.NONE, b"assigned"), (synced.error_code, synced.assignment), version)
            named = ("consumer", "range") if version >= 5 else (None, None)
            self.assertEqual(named, (synced.protocol_type, synced.protocol_name), version)

    def test_follower(self) -> None:
        """
        A follower waits for the leader.
        """
        one, two = self.join(0), self.join(0)
        for _ in range(2):
            self.serving.clock.advance(DELAY_S)
        leader, follower = self.successResultOf(one), self.successResultOf(two)
        for version in VERSIONS:
            waiting = self.sync(follower, version)
            self.assertNoResult(waiting)
        self.sync(leader)
        self.assertEqual(b"assigned", self.successResultOf(waiting).assignment)

    def test_an_assignment_that_is_too_large(self) -> None:
        """
        A record of it could not be kept: the leader is told, and the members join again, as in Kafka.
        """
        joined = self.joined()
        large = SyncGroupRequest.Assignment(member_id=joined.member_id, assignment=bytes(3 << 20))
        synced = self.successResultOf(self.sync(joined, assignments=[large]))
        self.assertEqual(ErrorCode.UNKNOWN_SERVER_ERROR, synced.error_code)
        self.assertEqual("PreparingRebalance", self.serving.parts.service(Groups).find("g").state)

    def test_static(self) -> None:
        """
        A static member says so, and is fenced where another one has its place.
        """
        old = self.stable(group_instance_id="i")
        self.successResultOf(self.join(group_instance_id="i"))
        for version in range(3, 6):
            error = self.assertRaises(KafkaError, self.sync, old, version, group_instance_id="i")
            self.assertEqual(ErrorCode.FENCED_INSTANCE_ID, error.code, version)

    def test_refused(self) -> None:
        """
        Strangers, members of another generation, and members of no group are refused.
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

    def test_protocol(self) -> None:
        """
        From v5 on a member has to say what it means to speak, and it must be what the group speaks.
        """
        joined = self.joined()
        for more in ({"protocol_type": None}, {"protocol_name": None}, {"protocol_name": "x"}, {"protocol_type": "x"}):
            error = self.assertRaises(KafkaError, self.sync, joined, 5, **more)
            self.assertEqual(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, error.code, more)

    def test_refused_later(self) -> None:
        """
        A refusal that comes while the member waits says why.
        """
        one, two = self.join(0), self.join(0)
        for _ in range(2):
            self.serving.clock.advance(DELAY_S)
        self.successResultOf(one)
        waiting = self.sync(self.successResultOf(two))
        self.serving.parts.service(Groups).stop()
        answer = self.successResultOf(waiting)
        self.assertEqual((ErrorCode.NOT_COORDINATOR, b""), (answer.error_code, answer.assignment))
        self.assertEqual([(ErrorCode.NOT_COORDINATOR, "g")], self.reasons())

    def test_cut_short(self) -> None:
        """
        A member whose wait is cut short is told to look for another coordinator.
        """
        one, two = self.join(0), self.join(0)
        for _ in range(2):
            self.serving.clock.advance(DELAY_S)
        self.successResultOf(one)
        waiting = self.sync(self.successResultOf(two))
        waiting.cancel()
        self.assertEqual(ErrorCode.NOT_COORDINATOR, self.successResultOf(waiting).error_code)
        self.assertTrue(sync_group.polls)

    def test_denied(self) -> None:
        """
        Who may not read by the group is refused.
        """
        joined = self.joined()
        self.serving.parts.authorizer = Denying()
        error = self.assertRaises(KafkaError, self.sync, joined)
        self.assertEqual(ErrorCode.GROUP_AUTHORIZATION_FAILED, error.code)
