"""
DeleteGroups.
"""

from typing import Any

from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from kgateway.groups.coordinator import GroupCoordinator
from kgateway.handlers.delete_groups import delete_groups
from kgateway.messages.delete_groups import DeleteGroupsRequest
from kgateway.security.permissions import Operation, Resource
from kgateway.wire.errors import ErrorCode, KafkaError
from tests.handlers.group_fixtures import commit, with_member
from tests.serving import Denying, Serving


class DeleteGroupsTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.serving = Serving()

    def begin(self, version: int, *group_ids: str) -> Deferred[Any]:
        return self.serving.ask(delete_groups, DeleteGroupsRequest(groups_names=list(group_ids)), version)

    def delete(self, version: int, *group_ids: str) -> list[tuple[str, int]]:
        response = self.successResultOf(self.begin(version, *group_ids))
        return [(result.group_id, result.error_code) for result in response.results]

    def test_empty_groups_are_deleted(self) -> None:
        """
        Their offsets are deleted too; groups with members and unknown ones are refused one by one.
        """
        assert delete_groups.versions == range(3)
        with_member(self.serving, "busy")
        for version in range(3):
            for group_id in ("gone", ""):
                commit(self.serving, group_id, "orders")
            assert self.delete(version, "missing", "gone", "busy", "", "gone") == [
                ("missing", ErrorCode.GROUP_ID_NOT_FOUND),
                ("gone", 0),
                ("busy", ErrorCode.NON_EMPTY_GROUP),
                ("", 0),
            ], version
            groups = self.serving.parts.service(GroupCoordinator)
            assert [group.group_id for group in self.successResultOf(Deferred.fromCoroutine(groups.all()))] == ["busy"]

    def test_the_response_waits_for_the_write(self) -> None:
        """
        It reports success or failure then.
        """
        for error in (None, KafkaError(ErrorCode.NOT_COORDINATOR, "lost")):
            committed: Deferred[None] = Deferred()
            self.patch(self.serving.parts.service(GroupCoordinator), "delete", lambda _, committed=committed: committed)
            answer = self.begin(2, "g")
            self.assertNoResult(answer)
            committed.errback(error) if error else committed.callback(None)
            [result] = self.successResultOf(answer).results
            assert result.error_code == (error.code if error else 0)

    def test_permission_is_needed(self) -> None:
        """
        Other groups of the request are deleted.
        """
        authorizer = self.serving.parts.authorizer = Denying(lambda *asked: asked[2] == "secret")
        for group_id in ("secret", "open"):
            commit(self.serving, group_id, "orders")
        assert self.delete(2, "secret", "open") == [("secret", ErrorCode.GROUP_AUTHORIZATION_FAILED), ("open", 0)]
        assert self.serving.parts.service(GroupCoordinator).find("secret")
        assert authorizer.asked == [(Operation.DELETE, Resource.GROUP, name) for name in ("secret", "open")]
