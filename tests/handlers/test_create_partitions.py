"""
CreatePartitions.
"""

from collections.abc import Sequence
from typing import Any

from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from kgateway.cluster.view import NewTopic
from kgateway.handlers.create_partitions import create_partitions
from kgateway.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsResponse
from kgateway.security.permissions import Operation, Resource
from kgateway.wire.errors import ErrorCode, KafkaError
from tests.serving import Denying, Serving

VERSIONS = range(4)
Asked = CreatePartitionsRequest.Topic


def _asked(name: str, count: int, nodes: Sequence[Sequence[int]] | None = None) -> Asked:
    assignments = None if nodes is None else [Asked.Assignment(broker_ids=list(on)) for on in nodes]
    return Asked(name=name, count=count, assignments=assignments)


class CreatePartitionsTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.start()

    def start(self, authorizer: Denying | None = None) -> None:
        self.serving = Serving(authorizer)
        for name in ("a", "b"):
            self.successResultOf(self.serving.broker.create_topic(NewTopic(name, 2)))

    def sizes(self) -> dict[str, int]:
        return {name: len(topic.partitions) for name, topic in self.serving.broker.view().topics.items()}

    def send(self, *topics: Asked, version: int = 3, validate_only: bool = False, timeout_ms: int = 500) -> Any:
        request = CreatePartitionsRequest(topics=list(topics), timeout_ms=timeout_ms, validate_only=validate_only)
        return self.serving.ask(create_partitions, request, version)

    def ask(self, *topics: Asked, **more: Any) -> list[CreatePartitionsResponse.Result]:
        results: list[CreatePartitionsResponse.Result] = self.successResultOf(self.send(*topics, **more)).results
        return results

    def codes(self, *topics: Asked, **more: Any) -> dict[str, int]:
        return {result.name: result.error_code for result in self.ask(*topics, **more)}

    def test_versions_of_kafka_4_3_are_served(self) -> None:
        assert create_partitions.versions == VERSIONS

    def test_topics_grow(self) -> None:
        """
        They get the requested number of partitions, in every version.
        """
        for version in VERSIONS:
            count = 3 + version
            assert self.codes(_asked("a", count), _asked("b", 9 + version), version=version) == {"a": 0, "b": 0}
            assert {"a": count, "b": 9 + version} == self.sizes(), version

    def test_assignments_may_be_given(self) -> None:
        """
        Each new partition has one.
        """
        assert self.codes(_asked("a", 4, [[1], [1]])) == {"a": 0}
        assert self.sizes()["a"] == 4

    def test_validate_only_adds_nothing(self) -> None:
        for version in VERSIONS:
            codes = self.codes(_asked("a", 3), _asked("b", 1), version=version, validate_only=True)
            assert codes == {"a": 0, "b": ErrorCode.INVALID_PARTITIONS}, version
            assert self.sizes() == {"a": 2, "b": 2}, version

    def test_refused_topics_do_not_hinder_others(self) -> None:
        """
        The response has the reason.
        """
        for version in VERSIONS:
            self.start()
            wrong, absent, stranger, right = self.ask(
                _asked("a", 2), _asked("x", 3), _asked("y z", 3), _asked("b", 3), version=version
            )
            assert wrong.error_code == ErrorCode.INVALID_PARTITIONS, version
            assert wrong.error_message == "Topic already has 2 partition(s).", version
            for result in (absent, stranger):
                assert result.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, version
            assert (right.error_code, right.error_message) == (0, None), version
            assert self.sizes() == {"a": 2, "b": 3}, version

    def test_internal_topics_do_not_grow(self) -> None:
        """
        The number of partitions decides where the state of a group is stored.
        """
        self.serving.broker.coordinator(Resource.GROUP, "g")
        for checks in (True, False):
            [told] = self.ask(_asked("__consumer_offsets", 60), validate_only=checks)
            assert told.error_code == ErrorCode.INVALID_PARTITIONS
            assert told.error_message == (
                "The number of partitions of the internal topic __consumer_offsets cannot be changed."
            )

    def test_impossible_assignments_are_refused(self) -> None:
        assert self.codes(_asked("a", 3, [[9]])) == {"a": ErrorCode.INVALID_REPLICA_ASSIGNMENT}

    def test_topics_named_twice_do_not_grow(self) -> None:
        """
        They are answered once.
        """
        for version in VERSIONS:
            results = self.ask(_asked("a", 3), _asked("a", 4), version=version)
            assert [result.error_code for result in results] == [ErrorCode.INVALID_REQUEST], version
            assert self.sizes()["a"] == 2, version

    def test_too_many_partitions_are_refused(self) -> None:
        """
        None of them is created.
        """
        error = self.failureResultOf(self.send(_asked("a", 3), _asked("b", 10_002)), KafkaError).value
        assert error.code == ErrorCode.POLICY_VIOLATION
        assert self.sizes() == {"a": 2, "b": 2}

    def test_permission_is_needed(self) -> None:
        """
        A client that may not alter a topic does not learn whether it exists.
        """
        need = (Operation.ALTER, Resource.TOPIC)
        for version in VERSIONS:
            self.start(Denying(lambda operation, kind, name: (operation, kind) == need and name != "b"))
            denied = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            codes = self.codes(_asked("a", 3), _asked("x", 3), _asked("b", 3), version=version)
            assert {"a": denied, "x": denied, "b": 0} == codes, version
            assert self.sizes() == {"a": 2, "b": 3}, version

    def test_reasons_are_remembered_with_the_topic(self) -> None:
        self.ask(_asked("a", 1))
        [refusal] = self.serving.context.refusals or []
        assert (refusal.subject, refusal.error.code) == ("a", ErrorCode.INVALID_PARTITIONS)

    def test_slow_topics_time_out(self) -> None:
        self.patch(self.serving.broker, "add_partitions", lambda topic_id, count: Deferred())
        answer = self.send(_asked("a", 3))
        self.serving.clock.advance(0.5)
        [result] = self.successResultOf(answer).results
        assert result.error_code == ErrorCode.REQUEST_TIMED_OUT
