"""
OffsetDelete.
"""

from typing import Any

from twisted.internet.defer import Deferred, maybeDeferred
from twisted.trial.unittest import SynchronousTestCase

from handlers.offset_delete import offset_delete
from kgateway.cluster.view import NewTopic
from kgateway.groups.groups import Groups
from kgateway.groups.offsets import Place
from kgateway.messages.offset_delete import OffsetDeleteRequest
from kgateway.security.permissions import Resource
from kgateway.wire.errors import ErrorCode, KafkaError
from tests.handlers.grouped import commit, with_member
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

    def left(self) -> set[Place]:
        return {place for place, _ in self.serving.parts.service(Groups).offsets("g")}

    def test_outcomes(self) -> None:
        """
        Offsets go, also such as were not there; what is no partition is told, each for itself.
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
            assert self.left() == {Place("orders", 0), Place("returns", 1)}

    def test_topics_that_are_read(self) -> None:
        """
        The offsets of what a member reads stay.
        """
        with_member(self.serving, "g")
        told = self.delete(orders=[0], returns=[0])
        assert told == [("orders", 0, ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC), ("returns", 0, 0)]
        assert self.left() == {Place("orders", 0), Place("orders", 1), Place("returns", 1)}

    def test_members_of_another_kind(self) -> None:
        """
        As long as members read nobody knows what, nothing goes.
        """
        with_member(self.serving, "g", "connect")
        assert self.refused() is ErrorCode.NON_EMPTY_GROUP
        assert len(self.left()) == 4

    def test_unknown_groups(self) -> None:
        """
        A group that is not there is told so, and the empty id is none.
        """
        assert self.refused("missing") is ErrorCode.GROUP_ID_NOT_FOUND
        assert self.refused("") is ErrorCode.INVALID_GROUP_ID

    def test_waits(self) -> None:
        """
        The answer comes when it is sure that the offsets are gone.
        """
        safe: Deferred[None] = Deferred()
        self.patch(self.serving.parts.service(Groups).offsets("g"), "forget", lambda _: safe)
        answer = self.begin({"orders": [0]})
        self.assertNoResult(answer)
        safe.callback(None)
        assert self.successResultOf(answer).error_code == 0

    def test_denied(self) -> None:
        """
        Who may not delete of the group deletes nothing; topics that may not be read fail alone.
        """
        self.serving.parts.authorizer = Denying(lambda *asked: asked[2] == "orders")
        told = self.delete(orders=[0], returns=[0])
        assert told == [("orders", 0, ErrorCode.TOPIC_AUTHORIZATION_FAILED), ("returns", 0, 0)]
        self.serving.parts.authorizer = Denying(lambda _, resource, __: resource is Resource.GROUP)
        assert self.refused() is ErrorCode.GROUP_AUTHORIZATION_FAILED
        assert len(self.left()) == 3
