"""
JoinGroup.
"""

from typing import Any

from kgateway.cluster.view import NewTopic
from kgateway.groups.coordinator import GroupCoordinator
from kgateway.groups.group import GroupType
from kgateway.handlers.consumer_group_heartbeat import consumer_group_heartbeat
from kgateway.handlers.join_group import join_group
from kgateway.handlers.leave_group import leave_group
from kgateway.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kgateway.messages.join_group import JoinGroupRequest
from kgateway.messages.leave_group import LeaveGroupRequest
from kgateway.wire.errors import ErrorCode, KafkaError
from tests.groups.classic.clients import subscription
from tests.handlers.group_members import DELAY_S, RANGE, MembersTestCase
from tests.serving import Denying, Serving

VERSIONS = range(10)


class JoinGroupTests(MembersTestCase):
    def test_all_versions_are_served(self) -> None:
        self.assertEqual(VERSIONS, join_group.versions)

    def test_the_first_member_leads(self) -> None:
        """
        It is the only member; from v4 on it gets its id first.
        """
        for version in VERSIONS:
            self.serving = Serving()
            first = self.join(version)
            if version >= 4:
                told = self.successResultOf(first)
                self.assertEqual((ErrorCode.MEMBER_ID_REQUIRED, -1), (told.error_code, told.generation_id), version)
                self.assertTrue(told.member_id.startswith("test-client-"), version)
                first = self.join(version, told.member_id)
            self.assertNoResult(first)
            self.serving.clock.advance(DELAY_S)
            joined = self.successResultOf(first)
            self.assertEqual((0, 1, "range"), (joined.error_code, joined.generation_id, joined.protocol_name), version)
            self.assertEqual(joined.member_id, joined.leader, version)
            [member] = joined.members
            self.assertEqual((joined.member_id, RANGE.metadata), (member.member_id, member.metadata), version)
            self.assertEqual("consumer" if version >= 7 else None, joined.protocol_type, version)

    def test_a_negative_rebalance_timeout_is_accepted(self) -> None:
        """
        So it is in Kafka.
        """
        for version in VERSIONS[1:]:
            self.serving = Serving()
            joined = self.joined(version, rebalance_timeout_ms=-5)
            self.assertEqual((ErrorCode.NONE, 1), (joined.error_code, joined.generation_id), version)

    def test_errors_have_no_protocol(self) -> None:
        """
        The field is null from v7 on, and empty before.
        """
        for version in VERSIONS:
            refused = self.successResultOf(self.join(version, session_timeout_ms=1))
            self.assertEqual(ErrorCode.INVALID_SESSION_TIMEOUT, refused.error_code)
            self.assertEqual(None if version >= 7 else "", refused.protocol_name, version)

    def test_a_full_group_gives_no_id(self) -> None:
        self.serving = Serving(group_max_size=1)
        self.joined()
        full = self.join(9)
        self.serving.clock.advance(DELAY_S)
        told = self.successResultOf(full)
        self.assertEqual((ErrorCode.GROUP_MAX_SIZE_REACHED, ""), (told.error_code, told.member_id))
        stranger = self.successResultOf(self.join(9, told.member_id, group_instance_id="i"))
        self.assertEqual((ErrorCode.GROUP_MAX_SIZE_REACHED, ""), (stranger.error_code, stranger.member_id))

    def test_all_fields_reach_the_group(self) -> None:
        """
        In v0 one timeout is used for both.
        """
        for version in VERSIONS:
            self.serving = Serving()
            self.joined(version)
            [member] = self.serving.parts.service(GroupCoordinator).classic("g", create=False).members
            timeouts = member.session_timeout_ms, member.rebalance_timeout_ms
            self.assertEqual((45_000, 60_000 if version else 45_000), timeouts, version)
            self.assertEqual(("test-client", "/127.0.0.1"), (member.client_id, member.client_host), version)
            self.assertEqual(["range"], list(member.protocols))

    def test_static_members_join_at_once(self) -> None:
        """
        A leader that returns does not assign, and is told so from v9 on.
        """
        for version in range(5, 10):
            self.serving = Serving()
            before = self.stable(version, group_instance_id="i")
            self.assertEqual("i", before.members[0].group_instance_id, version)
            again = self.successResultOf(self.join(version, group_instance_id="i"))
            self.assertEqual((0, 1), (again.error_code, again.generation_id), version)
            leads = again.leader == again.member_id
            self.assertEqual((version >= 9, version >= 9), (leads, again.skip_assignment), version)

    def test_refusals_have_a_reason(self) -> None:
        """
        It names the client.
        """
        refused: dict[ErrorCode, dict[str, Any]] = {
            ErrorCode.INVALID_GROUP_ID: {"group_id": ""},
            ErrorCode.INVALID_SESSION_TIMEOUT: {"session_timeout_ms": 1},
            ErrorCode.INCONSISTENT_GROUP_PROTOCOL: {"protocols": []},
            ErrorCode.UNKNOWN_MEMBER_ID: {"member_id": "stranger"},
        }
        for version in VERSIONS:
            for code, more in refused.items():
                answer = self.successResultOf(self.join(version, **more))
                self.assertEqual((code, -1), (answer.error_code, answer.generation_id), version)
                self.assertEqual(more.get("member_id", ""), answer.member_id, version)
                self.assertEqual([code], [code for code, _ in self.reasons()], version)

    def test_an_unknown_member_creates_no_group(self) -> None:
        self.successResultOf(self.join(member_id="stranger"))
        error = self.assertRaises(KafkaError, self.serving.parts.service(GroupCoordinator).find, "g")
        self.assertEqual(ErrorCode.GROUP_ID_NOT_FOUND, error.code)

    def test_a_consumer_group_admits_classic_members(self) -> None:
        """
        It serves all their requests.
        """
        self.serving.broker.create_topic(NewTopic("orders", 4))
        modern = ConsumerGroupHeartbeatRequest(
            group_id="g",
            member_id="m",
            member_epoch=0,
            rebalance_timeout_ms=60_000,
            subscribed_topic_names=["orders"],
            topic_partitions=[],
        )
        self.assertEqual(0, self.successResultOf(self.serving.ask(consumer_group_heartbeat, modern, 1)).error_code)
        offered = JoinGroupRequest.Protocol(name="range", metadata=subscription("orders"))
        told = self.successResultOf(self.join(protocols=[offered]))
        self.assertEqual(ErrorCode.MEMBER_ID_REQUIRED, told.error_code)
        joined = self.successResultOf(self.join(member_id=told.member_id, protocols=[offered]))
        self.assertEqual((0, []), (joined.error_code, joined.members))
        self.serving.clock.advance(1)  # the group has made a new assignment by then
        again = self.successResultOf(self.join(member_id=told.member_id, protocols=[offered]))
        synced = self.successResultOf(self.sync(again))
        self.assertEqual(("consumer", "range"), (synced.protocol_type, synced.protocol_name))
        self.assertEqual(GroupType.CONSUMER, self.serving.parts.service(GroupCoordinator).find("g").type)
        leave = LeaveGroupRequest(group_id="g", members=[LeaveGroupRequest.Member(member_id=told.member_id)])
        left = self.successResultOf(self.serving.ask(leave_group, leave, 5))
        self.assertEqual([0], [each.error_code for each in left.members])

    def test_later_refusals_have_a_reason(self) -> None:
        """
        The member has waited for the response.
        """
        waiting = self.join(0)
        self.serving.parts.service(GroupCoordinator).stop()
        answer = self.successResultOf(waiting)
        self.assertEqual(ErrorCode.NOT_COORDINATOR, answer.error_code)
        self.assertEqual([(ErrorCode.NOT_COORDINATOR, "g")], self.reasons())

    def test_a_cancelled_wait_sends_the_member_to_another_coordinator(self) -> None:
        waiting = self.join(0)
        waiting.cancel()
        self.assertEqual(ErrorCode.NOT_COORDINATOR, self.successResultOf(waiting).error_code)
        self.assertTrue(join_group.polls)

    def test_permission_is_needed(self) -> None:
        """
        Without it no group is created.
        """
        self.serving.parts.authorizer = Denying()
        request = JoinGroupRequest(
            group_id="g", session_timeout_ms=1, member_id="", protocol_type="consumer", protocols=[]
        )
        error = self.assertRaises(KafkaError, self.serving.ask, join_group, request, 9)
        self.assertEqual(ErrorCode.GROUP_AUTHORIZATION_FAILED, error.code)
