"""
CreateTopics. The rules for topics have their own tests; these are about the answers.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from kgateway.cluster.config_table import TOPIC_CONFIGS
from kgateway.cluster.view import ClusterView
from kgateway.handlers.create_topics import create_topics
from kgateway.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from kgateway.security.permissions import Operation, Resource
from kgateway.wire.errors import ErrorCode, KafkaError
from kgateway.wire.uuids import ZERO
from tests.cluster.clusters import NEAR, hear_log, serving_among
from tests.serving import Denying, Serving

VERSIONS = range(2, 8)
Asked = CreateTopicsRequest.Topic
Made = CreateTopicsResponse.Topic


def _asked(
    name: str,
    partitions: int = 1,
    replicas: int = 1,
    assignments: Mapping[int, Sequence[int]] | None = None,
    configs: Mapping[str, str | None] | None = None,
) -> Asked:
    return Asked(
        name=name,
        num_partitions=partitions,
        replication_factor=replicas,
        assignments=[Asked.Assignment(partition_index=i, broker_ids=list(n)) for i, n in (assignments or {}).items()],
        configs=[Asked.Config(name=key, value=value) for key, value in (configs or {}).items()],
    )


class CreateTopicsTestCase(SynchronousTestCase):
    def setUp(self) -> None:
        self.serving = Serving()

    def view(self) -> ClusterView:
        return self.serving.parts.broker.view()

    def ask(self, *topics: Asked, version: int = 7, **more: Any) -> list[Made]:
        request = CreateTopicsRequest(topics=list(topics), **more)
        made: list[Made] = self.successResultOf(self.serving.ask(create_topics, request, version)).topics
        return made

    def codes(self, *topics: Asked, **more: Any) -> dict[str, int]:
        return {topic.name: topic.error_code for topic in self.ask(*topics, **more)}

    def deny(self, *needs: tuple[Operation, Resource], name: str | None = None) -> None:
        """
        Deny these operations, on all resources or on the one of this name.
        """
        self.serving = Serving(
            Denying(lambda operation, kind, about: (operation, kind) in needs and about in {name or about})
        )


class MadeTests(CreateTopicsTestCase):
    def test_versions_of_kafka_4_3_are_served(self) -> None:
        assert create_topics.versions == VERSIONS

    def test_topics_are_created(self) -> None:
        """
        From v5 on the response has the topic's properties.
        """
        for version in VERSIONS:
            name = f"v{version}"
            [made] = self.ask(_asked(name, 3, configs={"retention.ms": "5"}), version=version)
            topic = self.view().topics[name]
            assert (len(topic.partitions), topic.config.overrides["retention.ms"]) == (3, "5"), version
            assert (made.error_code, made.error_message) == (0, None), version
            size = (made.num_partitions, made.replication_factor)
            assert ((3, 1) if version >= 5 else (-1, -1)) == size, version
            assert (topic.id if version >= 7 else ZERO) == made.topic_id, version

    def test_configs_are_returned(self) -> None:
        """
        From v5 on the response has all configs with their sources.
        """
        for version in VERSIONS[3:]:
            [made] = self.ask(_asked(f"v{version}", configs={"cleanup.policy": "compact"}), version=version)
            configs = {config.name: config for config in made.configs or ()}
            assert list(TOPIC_CONFIGS) == list(configs), version
            policy, flush = configs["cleanup.policy"], configs["flush.ms"]
            assert (policy.value, policy.config_source) == ("compact", 1), version
            assert (flush.value, flush.config_source) == ("9223372036854775807", 5), version
            assert (policy.read_only, policy.is_sensitive) == (False, False), version
            assert made.topic_config_error_code == 0, version

    def test_minus_one_means_the_default(self) -> None:
        """
        Partitions and replicas are then the gateway's numbers.
        """
        self.serving = Serving(num_partitions=6)
        [made] = self.ask(_asked("a", -1, -1))
        assert (made.num_partitions, made.replication_factor) == (6, 1)

    def test_assignments_decide_the_partition_count(self) -> None:
        [made] = self.ask(_asked("a", -1, -1, assignments={1: [1], 0: [1]}))
        assert (made.error_code, made.num_partitions) == (0, 2)

    def test_coordinator_topics_are_internal(self) -> None:
        """
        It does not matter which client creates them.
        """
        self.ask(_asked("__consumer_offsets"))
        assert self.view().topics["__consumer_offsets"].internal

    def test_replicas_are_limited_by_the_nodes(self) -> None:
        """
        More are taken for as many as there are, with a warning when the topic is created.
        """
        events = hear_log(self)
        self.ask(_asked("a", 1, 3), validate_only=True)
        assert events == []
        [made] = self.ask(_asked("a", 1, 3))
        assert made.replication_factor == 1
        assert [event["topic"] for event in events] == ["a"]
        self.ask(_asked("a", 1, 3))
        assert len(events) == 1

    def test_validate_only_creates_nothing(self) -> None:
        """
        The response is the same, except for the id.
        """
        self.serving, _ = serving_among(NEAR)
        for version in VERSIONS:
            [made] = self.ask(_asked("a", 3, 2), version=version, validate_only=True)
            assert made.error_code == 0, version
            size = (made.num_partitions, made.replication_factor, made.topic_id)
            assert ((3, 2, ZERO) if version >= 5 else (-1, -1, ZERO)) == size, version
            assert self.codes(_asked("b", 0), validate_only=True) == {"b": ErrorCode.INVALID_PARTITIONS}
        assert dict(self.view().topics) == {}


class RefusedTests(CreateTopicsTestCase):
    def test_refused_topics_do_not_hinder_others(self) -> None:
        """
        The response has the reason.
        """
        for version in VERSIONS:
            wrong, right = self.ask(_asked("a b"), _asked(f"v{version}"), version=version)
            told = (wrong.name, wrong.error_code, wrong.topic_id, wrong.num_partitions, wrong.configs)
            assert told == ("a b", ErrorCode.INVALID_TOPIC_EXCEPTION, ZERO, -1, [] if version >= 5 else None), version
            assert "'a b'" in str(wrong.error_message), version
            assert right.error_code == 0, version

    def test_rules_have_kafkas_error_codes(self) -> None:
        self.ask(_asked("taken"))
        codes = self.codes(
            _asked("taken"),
            _asked("counts", 0),
            _asked("replicas", 1, 0),
            _asked("config", configs={"nope": "1"}),
            _asked("null", configs={"retention.ms": None}),
            _asked("both", 1, -1, assignments={0: [1]}),
            _asked("stranger", -1, -1, assignments={0: [9]}),
            _asked("__cluster_metadata"),
        )
        assert codes == {
            "taken": ErrorCode.TOPIC_ALREADY_EXISTS,
            "counts": ErrorCode.INVALID_PARTITIONS,
            "replicas": ErrorCode.INVALID_REPLICATION_FACTOR,
            "config": ErrorCode.INVALID_CONFIG,
            "null": ErrorCode.INVALID_CONFIG,
            "both": ErrorCode.INVALID_REQUEST,
            "stranger": ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "__cluster_metadata": ErrorCode.INVALID_REQUEST,
        }
        assert list(self.view().topics) == ["taken"]

    def test_topics_named_twice_are_not_created(self) -> None:
        """
        They are answered once.
        """
        topics = self.ask(_asked("a"), _asked("b"), _asked("a", 2))
        assert [(t.name, t.error_code) for t in topics] == [("a", ErrorCode.INVALID_REQUEST), ("b", 0)]
        assert list(self.view().topics) == ["b"]

    def test_too_many_partitions_are_refused(self) -> None:
        """
        None of them is created.
        """
        request = CreateTopicsRequest(topics=[_asked("a"), _asked("b", 10_000)])
        error = self.failureResultOf(self.serving.ask(create_topics, request, 7), KafkaError).value
        assert error.code == ErrorCode.POLICY_VIOLATION
        assert dict(self.view().topics) == {}

    def test_reasons_are_remembered_with_the_topic(self) -> None:
        self.ask(_asked("a", 0))
        [refusal] = self.serving.context.refusals or []
        assert (refusal.subject, refusal.error.code) == ("a", ErrorCode.INVALID_PARTITIONS)

    def test_slow_topics_time_out(self) -> None:
        """
        So do those behind them.
        """
        self.patch(self.serving.broker, "create_topic", lambda new: Deferred())
        request = CreateTopicsRequest(topics=[_asked("a"), _asked("b")], timeout_ms=500)
        answer = self.serving.ask(create_topics, request, 7)
        self.serving.clock.advance(0.4)
        self.assertNoResult(answer)
        self.serving.clock.pump([0.1, 0])
        codes = [topic.error_code for topic in self.successResultOf(answer).topics]
        assert codes == [ErrorCode.REQUEST_TIMED_OUT] * 2


class DeniedTests(CreateTopicsTestCase):
    on_cluster = (Operation.CREATE, Resource.CLUSTER)
    on_topic = (Operation.CREATE, Resource.TOPIC)

    def test_one_of_two_permissions_is_enough(self) -> None:
        """
        A client that may create topics anywhere in the cluster, or this one, creates it.
        """
        for version in VERSIONS:
            for need in (self.on_cluster, self.on_topic):
                self.deny(need)
                assert self.codes(_asked("a"), version=version) == {"a": 0}, version

    def test_permission_is_needed(self) -> None:
        """
        A client without either does not learn whether the topic exists.
        """
        for version in VERSIONS:
            self.deny(self.on_cluster, self.on_topic)
            assert self.codes(_asked("a"), version=version) == {"a": ErrorCode.TOPIC_AUTHORIZATION_FAILED}
            assert dict(self.view().topics) == {}, version

    def test_hidden_configs_are_not_returned(self) -> None:
        """
        The topic is created for a client that may not describe its configs.
        """
        self.deny((Operation.DESCRIBE_CONFIGS, Resource.TOPIC), name="a")
        for version in VERSIONS[3:]:
            hidden, shown = self.ask(_asked("a"), _asked("b"), version=version, validate_only=True)
            told = (hidden.error_code, hidden.num_partitions, hidden.replication_factor, hidden.configs)
            assert told == (0, -1, -1, []), version
            assert hidden.topic_config_error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED, version
            assert (shown.topic_config_error_code, shown.num_partitions) == (0, 1), version
