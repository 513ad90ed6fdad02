"""
Heartbeat.
"""

from typing import Any

from kgateway.groups.coordinator import GroupCoordinator
from kgateway.handlers.heartbeat import heartbeat
from kgateway.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kgateway.messages.join_group import JoinGroupResponse
from kgateway.wire.errors import ErrorCode, KafkaError
from tests.handlers.group_members import MembersTestCase
from tests.serving import Denying

VERSIONS = range(5)


class HeartbeatTests(MembersTestCase):
    def beat(self, joined: JoinGroupResponse, version: int = 4, **more: Any) -> int:
        values = {"group_id": "g", "generation_id": joined.generation_id, "member_id": joined.member_id, **more}
        answer: HeartbeatResponse = self.successResultOf(
            self.serving.ask(heartbeat, HeartbeatRequest(**values), version)
        )
        return answer.error_code

    def test_all_versions_are_served(self) -> None:
        self.assertEqual(VERSIONS, heartbeat.versions)

    def test_heartbeats_keep_a_member(self) -> None:
        joined = self.stable()
        for version in VERSIONS:
            self.serving.clock.advance(40)
            self.assertEqual(ErrorCode.NONE, self.beat(joined, version), version)

    def test_errors_name_the_cause(self) -> None:
        """
        The client is no member of this generation.
        """
        joined = self.stable(group_instance_id="i")
        refused: list[tuple[ErrorCode, dict[str, Any]]] = [
            (ErrorCode.UNKNOWN_MEMBER_ID, {"member_id": "stranger"}),
            (ErrorCode.UNKNOWN_MEMBER_ID, {"group_id": "another"}),
            (ErrorCode.ILLEGAL_GENERATION, {"generation_id": 7}),
            (ErrorCode.INVALID_GROUP_ID, {"group_id": ""}),
        ]
        for version in VERSIONS:
            for code, more in refused:
                self.assertEqual(code, self.beat(joined, version, **more), version)
                self.assertEqual([code], [code for code, _ in self.reasons()])
        self.successResultOf(self.join(group_instance_id="i"))
        for version in (3, 4):
            self.assertEqual(ErrorCode.FENCED_INSTANCE_ID, self.beat(joined, version, group_instance_id="i"), version)

    def test_a_load_disturbs_no_member(self) -> None:
        joined = self.stable()

        def loading(*_: object, **__: object) -> None:
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "not yet")

        self.patch(self.serving.parts.service(GroupCoordinator), "find", loading)
        self.assertEqual(ErrorCode.NONE, self.beat(joined))

    def test_permission_is_needed(self) -> None:
        joined = self.stable()
        self.serving.parts.authorizer = Denying()
        error = self.assertRaises(KafkaError, self.beat, joined)
        self.assertEqual(ErrorCode.GROUP_AUTHORIZATION_FAILED, error.code)
