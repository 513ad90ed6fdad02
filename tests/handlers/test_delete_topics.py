"""
DeleteTopics.
"""

from typing import Any

from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from kgateway.cluster.view import NewTopic
from kgateway.handlers.delete_topics import delete_topics
from kgateway.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from kgateway.security.permissions import Operation, Resource
from kgateway.wire.errors import ErrorCode
from kgateway.wire.uuids import ZERO, Uuid
from tests.serving import Denying, Serving

VERSIONS = range(1, 7)
Answer = DeleteTopicsResponse.Response
Told = tuple[str | None, Uuid, int]


def _request(version: int, *names: str, timeout_ms: int = 1000) -> DeleteTopicsRequest:
    """
    A request by name, in the form of the version.
    """
    if version < 6:
        return DeleteTopicsRequest(topic_names=list(names), timeout_ms=timeout_ms)
    topics = [DeleteTopicsRequest.Topic(name=name, topic_id=ZERO) for name in names]
    return DeleteTopicsRequest(topics=topics, timeout_ms=timeout_ms)


class DeleteTopicsTestCase(SynchronousTestCase):
    def setUp(self) -> None:
        self.serving = Serving()

    def make(self, *names: str) -> list[Uuid]:
        made = [self.successResultOf(self.serving.broker.create_topic(NewTopic(name, 1))) for name in names]
        return [topic.id for topic in made]

    def ask(self, request: DeleteTopicsRequest, version: int = 6) -> list[Answer]:
        answers: list[Answer] = self.successResultOf(self.serving.ask(delete_topics, request, version)).responses
        return answers

    def told(self, *pairs: tuple[str | None, Uuid]) -> list[Told]:
        """
        The answers of v6 to requests by name, id, neither or both.
        """
        topics = [DeleteTopicsRequest.Topic(name=name, topic_id=topic_id) for name, topic_id in pairs]
        answers = self.ask(DeleteTopicsRequest(topics=topics, timeout_ms=1000))
        return [(answer.name, answer.topic_id, answer.error_code) for answer in answers]

    def left(self) -> list[str]:
        return list(self.serving.broker.view().topics)


class DeletedTests(DeleteTopicsTestCase):
    def test_versions_of_kafka_4_3_are_served(self) -> None:
        assert delete_topics.versions == VERSIONS

    def test_topics_are_deleted_by_name(self) -> None:
        """
        This works in every version.
        """
        for version in VERSIONS:
            [made, *_] = self.make("a", "b", "c")
            answers = self.ask(_request(version, "a", "c"), version)
            assert [(answer.name, answer.error_code) for answer in answers] == [("a", 0), ("c", 0)], version
            assert (made if version >= 6 else ZERO) == answers[0].topic_id, version
            assert self.left() == ["b"], version
            self.ask(_request(version, "b"), version)

    def test_topics_are_deleted_by_id(self) -> None:
        """
        From v6 on ids are accepted, and the response has name and id.
        """
        made, _ = self.make("a", "b")
        assert [("a", made, 0)] == self.told((None, made))
        assert self.left() == ["b"]

    def test_unknown_topics_do_not_hinder_others(self) -> None:
        """
        Unknown names and unknown ids have different error codes.
        """
        for version in VERSIONS:
            self.make("a")
            codes = {answer.name: answer.error_code for answer in self.ask(_request(version, "x", "a"), version)}
            assert codes == {"x": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "a": 0}, version
        unknown = Uuid.random()
        assert [(None, unknown, ErrorCode.UNKNOWN_TOPIC_ID)] == self.told((None, unknown))

    def test_a_topic_needs_name_or_id(self) -> None:
        """
        Neither and both are refused.
        """
        made, other = self.make("a", "b")
        told = self.told((None, ZERO), ("a", made), ("a", other))
        invalid = ErrorCode.INVALID_REQUEST
        assert told == [(None, ZERO, invalid), ("a", made, invalid), ("a", other, invalid)]
        assert self.left() == ["a", "b"]

    def test_topics_named_twice_are_kept(self) -> None:
        """
        They are answered once.
        """
        _, other, _ = self.make("a", "b", "c")
        told = self.told(("a", ZERO), (None, other), ("c", ZERO), ("a", ZERO), (None, other))
        assert [("a", ZERO, ErrorCode.INVALID_REQUEST), ("b", other, ErrorCode.INVALID_REQUEST)] == told[:2]
        assert [(name, code) for name, _, code in told[2:]] == [("c", 0)]
        assert self.left() == ["a", "b"]
        for version in VERSIONS:
            answers = self.ask(_request(version, "a", "a"), version)
            assert [answer.error_code for answer in answers] == [ErrorCode.INVALID_REQUEST], version

    def test_a_name_and_an_id_of_one_topic_are_duplicates(self) -> None:
        [made] = self.make("a")
        told = self.told(("a", ZERO), (None, made))
        assert [code for _, _, code in told] == [ErrorCode.INVALID_REQUEST] * 2
        assert self.left() == ["a"]

    def test_an_invalid_name_and_id_is_no_duplicate(self) -> None:
        """
        The same topic may be named validly beside it.
        """
        made, other = self.make("a", "b")
        assert [code for _, _, code in self.told(("a", other), (None, made))] == [ErrorCode.INVALID_REQUEST, 0]
        assert self.left() == ["b"]

    def test_reasons_are_returned_and_remembered(self) -> None:
        """
        From v5 on the response has them.
        """
        for version in VERSIONS:
            [answer] = self.ask(_request(version, "x"), version)
            assert ("there is no topic x" if version >= 5 else None) == answer.error_message, version
            [refusal] = self.serving.context.refusals or []
            assert (refusal.subject, refusal.error.message) == ("x", "there is no topic x"), version

    def test_slow_deletions_time_out(self) -> None:
        self.make("a")
        self.patch(self.serving.broker, "delete_topic", lambda topic_id: Deferred())
        answer = self.serving.ask(delete_topics, _request(6, "a", timeout_ms=500), 6)
        self.serving.clock.advance(0.5)
        [told] = self.successResultOf(answer).responses
        assert (told.name, told.error_code) == ("a", ErrorCode.REQUEST_TIMED_OUT)


class DeniedTests(DeleteTopicsTestCase):
    delete = (Operation.DELETE, Resource.TOPIC)
    delete_any = (Operation.DELETE, Resource.CLUSTER)
    see = (Operation.DESCRIBE, Resource.TOPIC)

    def denying(self, *needs: Any) -> None:
        self.serving = Serving(Denying(lambda operation, kind, _: (operation, kind) in needs))

    def test_permission_on_the_cluster_is_enough(self) -> None:
        self.denying(self.delete, self.see)
        made, _ = self.make("a", "b")
        assert [code for _, _, code in self.told((None, made), ("b", ZERO))] == [0, 0]

    def test_permission_on_the_topic_is_enough(self) -> None:
        self.denying(self.delete_any)
        made, _ = self.make("a", "b")
        assert [code for _, _, code in self.told((None, made), ("b", ZERO))] == [0, 0]

    def test_visible_topics_are_refused_by_name(self) -> None:
        """
        A client that may describe a topic, but not delete it, gets its name and the error.
        """
        self.denying(self.delete_any, self.delete)
        made, _ = self.make("a", "b")
        denied = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        told = self.told((None, made), ("b", ZERO), ("x", ZERO))
        absent = ("x", ZERO, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        assert [("a", made, denied), ("b", ZERO, denied), absent] == told
        assert self.left() == ["a", "b"]

    def test_hidden_topics_look_unknown(self) -> None:
        """
        For a client that may not describe topics, existing and unknown names look alike, and ids have no name.
        """
        self.denying(self.delete_any, self.see)
        made, _ = self.make("secret", "b")
        denied = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        told = self.told((None, made), ("b", ZERO), ("x", ZERO))
        assert [(None, made, denied), ("b", ZERO, denied), ("x", ZERO, denied)] == told
        topic = DeleteTopicsRequest.Topic(name=None, topic_id=made)
        [answer] = self.ask(DeleteTopicsRequest(topics=[topic], timeout_ms=0))
        assert "secret" not in str(answer.error_message)
        assert self.left() == ["secret", "b"]

    def test_hidden_names_and_ids_are_not_matched(self) -> None:
        """
        The client does not learn that a name and an id belong to one topic.
        """
        self.denying(self.delete_any, self.see)
        [made] = self.make("secret")
        codes = [code for _, _, code in self.told((None, made), ("secret", ZERO))]
        assert codes == [ErrorCode.TOPIC_AUTHORIZATION_FAILED] * 2
