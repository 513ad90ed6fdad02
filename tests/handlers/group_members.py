"""
Members of a classic group, with clients of any version.
"""

from typing import Any

from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from kgateway.handlers.join_group import join_group
from kgateway.handlers.sync_group import sync_group
from kgateway.messages.join_group import JoinGroupRequest, JoinGroupResponse
from kgateway.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from kgateway.wire.errors import ErrorCode
from tests.serving import Serving

DELAY_S = 3
RANGE = JoinGroupRequest.Protocol(name="range", metadata=b"\0\1\0\0\0\0\0\0\0\0\0\0\0\0")


class MembersTestCase(SynchronousTestCase):
    def setUp(self) -> None:
        self.serving = Serving()

    def join(self, version: int = 9, member_id: str = "", **more: Any) -> Deferred[JoinGroupResponse]:
        values: dict[str, Any] = {
            "group_id": "g",
            "session_timeout_ms": 45_000,
            "rebalance_timeout_ms": 60_000,
            "protocol_type": "consumer",
            "protocols": [RANGE],
        }
        request = JoinGroupRequest(**{**values, "member_id": member_id, **more})
        return self.serving.ask(join_group, request, version)

    def sync(self, joined: JoinGroupResponse, version: int = 5, **more: Any) -> Deferred[SyncGroupResponse]:
        each = SyncGroupRequest.Assignment
        values: dict[str, Any] = {
            "group_id": "g",
            "generation_id": joined.generation_id,
            "member_id": joined.member_id,
            "protocol_type": "consumer",
            "protocol_name": "range",
            "assignments": [each(member_id=one.member_id, assignment=b"assigned") for one in joined.members],
        }
        return self.serving.ask(sync_group, SyncGroupRequest(**{**values, **more}), version)

    def joined(self, version: int = 9, **more: Any) -> JoinGroupResponse:
        """
        A new member that has joined an empty group.
        """
        first = self.join(version, **more)
        if version >= 4 and "group_instance_id" not in more:
            first = self.join(version, self.successResultOf(first).member_id, **more)
        self.serving.clock.advance(DELAY_S)
        joined: JoinGroupResponse = self.successResultOf(first)
        self.assertEqual(ErrorCode.NONE, joined.error_code)
        return joined

    def stable(self, version: int = 9, **more: Any) -> JoinGroupResponse:
        joined = self.joined(version, **more)
        self.successResultOf(self.sync(joined))
        return joined

    def reasons(self) -> list[tuple[ErrorCode, str]]:
        """
        The reasons that `kgateway why` would show for the last request.
        """
        return [(one.error.code, one.subject) for one in self.serving.context.refusals or ()]
