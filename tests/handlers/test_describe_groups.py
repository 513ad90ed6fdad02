"""
DescribeGroups.
"""

from kgateway.groups.coordinator import GroupCoordinator
from kgateway.groups.group import GroupType
from kgateway.handlers.describe_groups import describe_groups
from kgateway.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from kgateway.messages.operations import UNKNOWN_OPERATIONS
from kgateway.security.permissions import OPERATIONS, Resource
from kgateway.wire.errors import ErrorCode
from tests.groups.empty_groups import empty_consumer
from tests.handlers.group_members import RANGE, MembersTestCase
from tests.serving import Denying

VERSIONS = range(7)


class DescribeGroupsTests(MembersTestCase):
    def describe(self, version: int, *group_ids: str, operations: bool = False) -> list[DescribeGroupsResponse.Group]:
        request = DescribeGroupsRequest(groups=list(group_ids), include_authorized_operations=operations)
        answer: DescribeGroupsResponse = self.successResultOf(self.serving.ask(describe_groups, request, version))
        return answer.groups

    def test_all_versions_are_served(self) -> None:
        self.assertEqual(VERSIONS, describe_groups.versions)

    def test_stable_groups_are_described_fully(self) -> None:
        joined = self.stable(group_instance_id="i")
        for version in VERSIONS:
            [group] = self.describe(version, "g")
            self.assertEqual((ErrorCode.NONE, "g", "Stable"), (group.error_code, group.group_id, group.group_state))
            self.assertEqual(("consumer", "range"), (group.protocol_type, group.protocol_data), version)
            [member] = group.members
            self.assertEqual((joined.member_id, "test-client"), (member.member_id, member.client_id), version)
            self.assertEqual("/127.0.0.1", member.client_host)
            self.assertEqual((RANGE.metadata, b"assigned"), (member.member_metadata, member.member_assignment), version)
            self.assertEqual("i" if version >= 4 else None, member.group_instance_id, version)

    def test_rebalancing_groups_hide_their_protocol(self) -> None:
        """
        The members' metadata is hidden, too.
        """
        joined = self.joined()
        self.assertEqual("CompletingRebalance", self.shown())
        self.successResultOf(self.sync(joined))
        self.serving.parts.service(GroupCoordinator).classic("g", create=False).rebalance("a test")
        self.assertEqual("PreparingRebalance", self.shown())

    def shown(self) -> str:
        [group] = self.describe(6, "g")
        self.assertEqual(("consumer", ""), (group.protocol_type, group.protocol_data))
        self.assertEqual([b""], [member.member_metadata for member in group.members])
        return group.group_state

    def test_unknown_groups_are_dead(self) -> None:
        """
        From v6 on they have an error, and so have groups of the other protocol.
        """
        groups = self.serving.parts.service(GroupCoordinator)
        empty_consumer(groups, "modern")
        self.assertEqual(GroupType.CONSUMER, groups.find("modern").type)
        for version in VERSIONS:
            for name in ("nowhere", "modern"):
                [group] = self.describe(version, name)
                code = ErrorCode.GROUP_ID_NOT_FOUND if version >= 6 else ErrorCode.NONE
                self.assertEqual((code, "Dead"), (group.error_code, group.group_state), version)
                self.assertEqual(version >= 6, bool(group.error_message), version)

    def test_each_group_has_its_own_outcome(self) -> None:
        self.stable()
        groups = self.describe(6, "", "g", "nowhere")
        self.assertEqual(["", "g", "nowhere"], [group.group_id for group in groups])
        expected = [ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.NONE, ErrorCode.GROUP_ID_NOT_FOUND]
        self.assertEqual(expected, [group.error_code for group in groups])

    def test_operations_are_listed_on_request(self) -> None:
        self.stable()
        everything = sum(1 << operation for operation in OPERATIONS[Resource.GROUP])
        for version in range(3, 7):
            self.assertEqual(UNKNOWN_OPERATIONS, self.describe(version, "g")[0].authorized_operations, version)
            [group] = self.describe(version, "g", operations=True)
            self.assertEqual(everything, group.authorized_operations, version)

    def test_permission_is_needed(self) -> None:
        """
        A client without it does not learn whether the group exists.
        """
        self.stable()
        self.serving.parts.authorizer = Denying(lambda _, __, name: name != "h")
        groups = self.describe(6, "g", "nowhere", "h", operations=True)
        denied = ErrorCode.GROUP_AUTHORIZATION_FAILED
        self.assertEqual([denied, denied, ErrorCode.GROUP_ID_NOT_FOUND], [group.error_code for group in groups])
        self.assertEqual({"", "Dead"}, {group.group_state for group in groups})
        self.assertEqual({UNKNOWN_OPERATIONS}, {group.authorized_operations for group in groups})
