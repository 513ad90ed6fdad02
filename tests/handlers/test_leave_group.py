"""
LeaveGroup.
"""

from typing import Any

from kgateway.groups.coordinator import GroupCoordinator
from kgateway.handlers.leave_group import leave_group
from kgateway.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from kgateway.wire.errors import ErrorCode, KafkaError
from tests.handlers.group_members import MembersTestCase
from tests.serving import Denying, Serving

VERSIONS = range(6)
Member = LeaveGroupRequest.Member


class LeaveGroupTests(MembersTestCase):
    def leave(self, version: int, *members: Member, group_id: str = "g") -> LeaveGroupResponse:
        request = LeaveGroupRequest(group_id=group_id, member_id=members[0].member_id, members=list(members))
        answer: LeaveGroupResponse = self.successResultOf(self.serving.ask(leave_group, request, version))
        return answer

    def codes(self, version: int, *members: Member, **more: Any) -> list[int]:
        """
        The outcome for each member; before v3 it is that of the request.
        """
        answer = self.leave(version, *members, **more)
        if version < 3:
            return [answer.error_code]
        self.assertEqual(ErrorCode.NONE, answer.error_code)
        said = [(each.member_id, each.group_instance_id) for each in answer.members]
        self.assertEqual([(each.member_id, each.group_instance_id) for each in members], said)
        return [each.error_code for each in answer.members]

    def test_all_versions_are_served(self) -> None:
        self.assertEqual(VERSIONS, leave_group.versions)

    def test_a_leaving_member_is_removed(self) -> None:
        for version in VERSIONS:
            self.serving = Serving()
            member = Member(member_id=self.stable().member_id, reason="a test" if version >= 5 else None)
            self.assertEqual([ErrorCode.NONE], self.codes(version, member), version)
            self.assertEqual("Empty", self.serving.parts.service(GroupCoordinator).find("g").state, version)
            self.assertEqual([ErrorCode.UNKNOWN_MEMBER_ID], self.codes(version, member), version)

    def test_several_members_leave(self) -> None:
        """
        They are named by member id or instance id.
        """
        for version in range(3, 6):
            self.serving = Serving()
            self.stable(group_instance_id="i")
            members = Member(member_id="stranger"), Member(member_id="", group_instance_id="i")
            self.assertEqual([ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.NONE], self.codes(version, *members), version)

    def test_an_unknown_group_has_no_members(self) -> None:
        for version in VERSIONS:
            self.assertEqual([ErrorCode.UNKNOWN_MEMBER_ID], self.codes(version, Member(member_id="x")), version)

    def test_a_group_id_is_needed(self) -> None:
        """
        The whole request fails.
        """
        error = self.assertRaises(KafkaError, self.leave, 5, Member(member_id="x"), group_id="")
        self.assertEqual(ErrorCode.INVALID_GROUP_ID, error.code)

    def test_permission_is_needed(self) -> None:
        self.serving.parts.authorizer = Denying()
        error = self.assertRaises(KafkaError, self.leave, 5, Member(member_id="x"))
        self.assertEqual(ErrorCode.GROUP_AUTHORIZATION_FAILED, error.code)
