"""
OffsetDelete.
"""

from typing import Any

from twisted.internet.defer import Deferred, maybeDeferred
from twisted.trial.unittest import SynchronousTestCase

from kgateway.cluster.view import NewTopic
from kgateway.groups.coordinator import GroupCoordinator
from kgateway.handlers.offset_delete import offset_delete
from kgateway.messages.offset_delete import OffsetDeleteRequest
from kgateway.security.permissions import Resource
from kgateway.topic_partition import TopicPartition
from kgateway.wire.errors import ErrorCode, KafkaError
from tests.handlers.group_fixtures import commit, with_member
from tests.serving import Denying, Serving

Topic = OffsetDeleteRequest.Topic


class OffsetDeleteTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.serving = Serving()
        for name in ("orders", "returns"):
            self.serving.broker.create_topic(NewTopic(name, 2))
            for index in range(2):
                commit(self.serving, "g", name, index)

    def begin(self, wanted: dict[str, list[int]], group_id: str = "g") -> Deferred[Any]:
        topics = [
            Topic(name=name, partitions=[Topic.Partition(partition_index=index) for index in indexes])
            for name, indexes in wanted.items()
        ]
        return maybeDeferred(self.serving.ask, offset_delete, OffsetDeleteRequest(group_id=group_id, topics=topics), 0)

    def delete(self, **wanted: list[int]) -> list[tuple[str, int, int]]:
        response = self.successResultOf(self.begin(wanted))
        assert response.error_code == 0
        return [(t.name, one.partition_index, one.error_code) for t in response.topics for one in t.partitions]

    def refused(self, group_id: str = "g") -> ErrorCode:
        code: ErrorCode = self.failureResultOf(self.begin({"orders": [0]}, group_id), KafkaError).value.code
        return code

    def left(self) -> set[TopicPartition]:
        return {place for place, _ in self.serving.parts.service(GroupCoordinator).offsets("g")}

    def test_offsets_are_deleted(self) -> None:
        """
        Unknown ones are, too; each invalid partition has its own error.
        """
        assert offset_delete.versions == range(1)
        unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        for _ in range(2):
            told = self.delete(orders=[1, 2, -1], missing=[0], returns=[0])
            assert told == [
                ("orders", 1, 0),
                ("orders", 2, unknown),
                ("orders", -1, unknown),
                ("missing", 0, unknown),
                ("returns", 0, 0),
            ]
            assert self.left() == {TopicPartition("orders", 0), TopicPartition("returns", 1)}

    def test_offsets_of_subscribed_topics_are_kept(self) -> None:
        with_member(self.serving, "g")
        told = self.delete(orders=[0], returns=[0])
        assert told == [("orders", 0, ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC), ("returns", 0, 0)]
        assert self.left() == {TopicPartition("orders", 0), TopicPartition("orders", 1), TopicPartition("returns", 1)}

    def test_unknown_subscriptions_protect_everything(self) -> None:
        """
        The members' protocol type is unknown.
        """
        with_member(self.serving, "g", "connect")
        assert self.refused() is ErrorCode.NON_EMPTY_GROUP
        assert len(self.left()) == 4

    def test_unknown_groups_are_refused(self) -> None:
        """
        The empty id is invalid.
        """
        assert self.refused("missing") is ErrorCode.GROUP_ID_NOT_FOUND
        assert self.refused("") is ErrorCode.INVALID_GROUP_ID

    def test_the_response_waits_for_the_write(self) -> None:
        committed: Deferred[None] = Deferred()
        self.patch(self.serving.parts.service(GroupCoordinator).offsets("g"), "forget", lambda _: committed)
        answer = self.begin({"orders": [0]})
        self.assertNoResult(answer)
        committed.callback(None)
        assert self.successResultOf(answer).error_code == 0

    def test_permission_is_needed(self) -> None:
        """
        Without it on the group nothing is deleted; topics fail one by one.
        """
        self.serving.parts.authorizer = Denying(lambda *asked: asked[2] == "orders")
        told = self.delete(orders=[0], returns=[0])
        assert told == [("orders", 0, ErrorCode.TOPIC_AUTHORIZATION_FAILED), ("returns", 0, 0)]
        self.serving.parts.authorizer = Denying(lambda _, resource, __: resource is Resource.GROUP)
        assert self.refused() is ErrorCode.GROUP_AUTHORIZATION_FAILED
        assert len(self.left()) == 3
