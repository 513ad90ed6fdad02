"""
ConsumerGroupDescribe.
"""

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kgateway.cluster.view import NewTopic
from kgateway.groups.coordinator import GroupCoordinator
from kgateway.handlers.consumer_group_describe import consumer_group_describe
from kgateway.handlers.consumer_group_heartbeat import consumer_group_heartbeat
from kgateway.messages.consumer_group_describe import ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse
from kgateway.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kgateway.messages.operations import UNKNOWN_OPERATIONS
from kgateway.security.permissions import Operation, Resource
from kgateway.wire.errors import ErrorCode
from tests.serving import Denying, Serving

Group = ConsumerGroupDescribeResponse.Group


class DescribeTests(SynchronousTestCase):
    denied: Any = None  # what the authorizer denies

    def setUp(self) -> None:
        self.denying = Denying(lambda *asked: asked == self.denied)
        self.serving = Serving(self.denying)
        self.successResultOf(self.serving.broker.create_topic(NewTopic("t", 2)))
        request = ConsumerGroupHeartbeatRequest(
            group_id="g",
            member_id="m",
            member_epoch=0,
            rebalance_timeout_ms=60_000,
            subscribed_topic_regex="t",
            topic_partitions=[],
        )
        self.successResultOf(self.serving.ask(consumer_group_heartbeat, request, 1))

    def describe(self, *group_ids: str, version: int = 1, operations: bool = False) -> list[Group]:
        request = ConsumerGroupDescribeRequest(group_ids=list(group_ids), include_authorized_operations=operations)
        response = self.successResultOf(self.serving.ask(consumer_group_describe, request, version))
        groups: list[Group] = response.groups
        return groups

    def test_groups_are_described(self) -> None:
        """
        They have their epochs and their members with their assignments; from v1 on also with their protocol.
        """
        for version, member_type in ((0, -1), (1, 1)):
            [group] = self.describe("g", version=version)
            assert (group.error_code, group.group_state, group.group_epoch) == (0, "Stable", 2)
            assert (group.assignment_epoch, group.assignor_name) == (2, "uniform")
            [member] = group.members
            assert (member.member_id, member.member_epoch, member.member_type) == ("m", 2, member_type), version
            assert member.subscribed_topic_regex == "t"
            for assignment in (member.assignment, member.target_assignment):
                assert [(part.topic_name, part.partitions) for part in assignment.topic_partitions] == [("t", [0, 1])]
            assert group.authorized_operations == UNKNOWN_OPERATIONS

    def test_other_groups_are_not_found(self) -> None:
        """
        Consumer groups of the same request are described.
        """
        self.serving.parts.service(GroupCoordinator).entry_or_new("classic")
        groups = self.describe("x", "classic", "", "g")
        assert [group.error_code for group in groups] == [
            ErrorCode.GROUP_ID_NOT_FOUND,
            ErrorCode.GROUP_ID_NOT_FOUND,
            ErrorCode.INVALID_GROUP_ID,
            ErrorCode.NONE,
        ]
        assert [group.group_id for group in groups] == ["x", "classic", "", "g"]
        assert all(group.error_message for group in groups[:3])
        assert [refusal.subject for refusal in self.serving.context.refusals or []] == ["x", "classic", ""]

    def test_operations_are_listed_on_request(self) -> None:
        [group] = self.describe("g", operations=True)
        assert group.authorized_operations == sum(
            1 << operation
            for operation in (
                Operation.READ,
                Operation.DELETE,
                Operation.DESCRIBE,
                Operation.DESCRIBE_CONFIGS,
                Operation.ALTER_CONFIGS,
            )
        )

    def test_permissions_are_needed(self) -> None:
        """
        The client must be allowed to describe the group and all topics of its members.
        """
        for resource, name, code in (
            (Resource.GROUP, "g", ErrorCode.GROUP_AUTHORIZATION_FAILED),
            (Resource.TOPIC, "t", ErrorCode.TOPIC_AUTHORIZATION_FAILED),
        ):
            self.denied = (Operation.DESCRIBE, resource, name)
            [group] = self.describe("g")
            assert (group.error_code, group.members) == (code, [])
