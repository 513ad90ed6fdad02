"""
Heartbeat.
"""

from typing import Any

from handlers.heartbeat import heartbeat
from kgateway.groups.groups import Groups
from kgateway.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kgateway.messages.join_group import JoinGroupResponse
from kgateway.wire.errors import ErrorCode, KafkaError
from tests.handlers.grouping import MembersTestCase
from tests.serving import Denying

VERSIONS = range(5)


class HeartbeatTests(MembersTestCase):
    def beat(self, joined: JoinGroupResponse, version: int = 4, **more: Any) -> int:
        values = {"group_id": "g", "generation_id": joined.generation_id, "member_id": joined.member_id, **more}
        answer: HeartbeatResponse = self.successResultOf(
            self.serving.ask(heartbeat, HeartbeatRequest(**values), version)
        )
        return answer.error_code

    def test_versions(self) -> None:
        """
        All versions are served.
        """
        self.assertEqual(VERSIONS, heartbeat.versions)

    def test_alive(self) -> None:
        """
        A member that sends heartbeats stays in its group.
        """
        joined = self.stable()
        for version in VERSIONS:
            self.serving.clock.advance(40)
            self.assertEqual(ErrorCode.NONE, self.beat(joined, version), version)

    def test_refused(self) -> None:
        """
        Who is no member of this generation is told so.
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

    def test_while_loading(self) -> None:
        """
        While groups are loaded no member is disturbed.
        """
        joined = self.stable()

        def loading(*_: object, **__: object) -> None:
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "not yet")

        self.patch(self.serving.parts.service(Groups), "find", loading)
        self.assertEqual(ErrorCode.NONE, self.beat(joined))

    def test_denied(self) -> None:
        """
        Who may not read by the group is refused.
        """
        joined = self.stable()
        self.serving.parts.authorizer = Denying()
        error = self.assertRaises(KafkaError, self.beat, joined)
        self.assertEqual(ErrorCode.GROUP_AUTHORIZATION_FAILED, error.code)
