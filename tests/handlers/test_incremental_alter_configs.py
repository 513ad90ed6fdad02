"""
IncrementalAlterConfigs.
"""

from typing import Any

from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from kgateway.cluster.config import TopicConfig
from kgateway.cluster.config_resource import group
from kgateway.cluster.view import NewTopic
from kgateway.handlers.incremental_alter_configs import incremental_alter_configs
from kgateway.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from kgateway.security.permissions import Operation, Resource
from kgateway.wire.errors import ErrorCode, KafkaError
from tests.cluster.clusters import hear_log
from tests.serving import Denying, Serving

TOPIC, GROUP = 2, 32
SET, DELETE, APPEND, SUBTRACT = range(4)
SESSION, HEARTBEAT = "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"
VERSIONS = range(2)

Asked = IncrementalAlterConfigsRequest.Resource
Answer = IncrementalAlterConfigsResponse.Response


def _asked(name: str, *changes: tuple[str, int, str | None], kind: int = GROUP) -> Asked:
    configs = [Asked.Config(name=key, config_operation=operation, value=value) for key, operation, value in changes]
    return Asked(resource_type=kind, resource_name=name, configs=configs)


def _set(name: str, **values: str) -> Asked:
    return _asked(name, *((f"consumer.{key.replace('_', '.')}.ms", SET, value) for key, value in values.items()))


class AlteringTestCase(SynchronousTestCase):
    def setUp(self) -> None:
        self.serving = Serving()

    def begin(self, *resources: Asked, version: int = 1, validate_only: bool = False) -> Deferred[Any]:
        request = IncrementalAlterConfigsRequest(resources=list(resources), validate_only=validate_only)
        return self.serving.ask(incremental_alter_configs, request, version)

    def ask(self, *resources: Asked, **more: Any) -> list[Answer]:
        answers: list[Answer] = self.successResultOf(self.begin(*resources, **more)).responses
        told = [(answer.resource_type, answer.resource_name) for answer in answers]
        assert told == [(asked.resource_type, asked.resource_name) for asked in resources]
        return answers

    def codes(self, *resources: Asked, **more: Any) -> list[int]:
        return [answer.error_code for answer in self.ask(*resources, **more)]

    def of(self, group_id: str) -> dict[str, str]:
        return dict(self.serving.broker.view().overrides_of(group(group_id)))

    def assert_refused(self, code: ErrorCode, says: str, asked: Asked) -> None:
        before = self.serving.broker.view()
        for version in VERSIONS:
            [answer] = self.ask(asked, version=version)
            assert answer.error_code == code, answer.error_message
            assert says in str(answer.error_message)
            [refusal] = self.serving.context.refusals or []
            assert refusal.error.code is code
        assert self.serving.broker.view() is before


class IncrementalAlterConfigsTests(AlteringTestCase):
    def test_versions_of_kafka_4_3_are_served(self) -> None:
        assert incremental_alter_configs.versions == VERSIONS

    def test_configs_are_set_and_deleted(self) -> None:
        """
        The group need not exist, and other configs are unchanged.
        """
        for version in VERSIONS:
            self.serving = Serving()
            [answer] = self.ask(_set("g", session_timeout="50000", heartbeat_interval="6000"), version=version)
            assert (answer.error_code, answer.error_message) == (0, None)
            assert self.of("g") == {SESSION: "50000", HEARTBEAT: "6000"}, version
            change = _asked("g", (SESSION, SET, "60000"), (HEARTBEAT, DELETE, None))
            assert self.codes(change, version=version) == [0]
            assert self.of("g") == {SESSION: "60000"}, version
            assert self.codes(_asked("g", (SESSION, DELETE, None), ("nothing", DELETE, "")), version=version) == [0]
            assert self.serving.broker.view().overrides == {}, version

    def test_validate_only_changes_nothing(self) -> None:
        """
        Errors are reported.
        """
        self.codes(_set("g", session_timeout="50000"))
        before = self.serving.broker.view()
        asked = (
            _set("g", session_timeout="60000"),
            _set("h", session_timeout="1"),
            _asked("i", (SESSION, DELETE, None)),
        )
        assert self.codes(*asked, validate_only=True) == [0, ErrorCode.INVALID_CONFIG, 0]
        assert self.serving.broker.view() is before

    def test_one_refused_config_refuses_its_group(self) -> None:
        """
        Other groups are changed.
        """
        wrong = _set("g", session_timeout="50000", heartbeat_interval="1")
        assert self.codes(wrong, _set("h", session_timeout="50000")) == [ErrorCode.INVALID_CONFIG, 0]
        assert (self.of("g"), self.of("h")) == ({}, {SESSION: "50000"})

    def test_the_resulting_config_is_validated(self) -> None:
        """
        Earlier and new values must fit together.
        """
        self.serving = Serving(group_consumer_max_heartbeat_interval_ms=59_000)
        assert self.codes(_set("g", session_timeout="60000")) == [0]
        assert self.codes(_set("g", heartbeat_interval="59000")) == [0]
        self.assert_refused(
            ErrorCode.INVALID_CONFIG,
            f"{SESSION} (59000) must be above {HEARTBEAT} (59000)",
            _set("g", session_timeout="59000"),
        )
        self.assert_refused(ErrorCode.INVALID_CONFIG, "(45000) must be above", _asked("g", (SESSION, DELETE, None)))

    def test_invalid_configs_are_refused(self) -> None:
        """
        They are unknown, wrong, out of bounds, or for groups that are not served.
        """
        for key, value, says in (
            ("session.timeout.ms", "50000", "Unknown group config name: session.timeout.ms; did you mean"),
            (SESSION, "long", "Not a number of type INT"),
            (SESSION, "44999", "greater than or equal to group.consumer.min.session.timeout.ms"),
            ("share.session.timeout.ms", "50000", "share groups, which are not served here"),
            ("streams.num.standby.replicas", "1", "streams groups, which are not served here"),
        ):
            self.assert_refused(ErrorCode.INVALID_CONFIG, says, _asked("g", (key, SET, value)))

    def test_only_lists_can_be_appended_to(self) -> None:
        """
        Nothing can be subtracted from other configs either.
        """
        for operation in (APPEND, SUBTRACT):
            self.assert_refused(
                ErrorCode.INVALID_CONFIG, "its type is not LIST", _asked("g", (SESSION, operation, "50000"))
            )

    def test_meaningless_changes_are_refused(self) -> None:
        """
        They have no group id, an unknown operation, a config named twice, or no value.
        """
        for asked, says in (
            (_set("", session_timeout="50000"), "Default group resources are not allowed."),
            (_asked("g", (SESSION, 4, "50000")), "Unknown operations type 4"),
            (_asked("g", (SESSION, SET, "50000"), (SESSION, SET, "60000")), "duplicate config keys"),
            (_asked("g", (SESSION, SET, None)), "Null value not supported for : "),
        ):
            self.assert_refused(ErrorCode.INVALID_REQUEST, says, asked)

    def test_a_resource_named_twice_is_not_changed(self) -> None:
        twice = [_set("g", session_timeout=value) for value in ("50000", "60000")]
        other = _set("h", session_timeout="50000")
        [first, done, second] = self.ask(twice[0], other, twice[1])
        assert [first.error_code, done.error_code, second.error_code] == [
            ErrorCode.INVALID_REQUEST,
            0,
            ErrorCode.INVALID_REQUEST,
        ]
        assert first.error_message == "Each resource must appear at most once."
        assert self.serving.broker.view().overrides == {group("h"): {SESSION: "50000"}}

    def test_other_resource_types_are_refused(self) -> None:
        """
        They are client metrics and types unknown to Kafka.
        """
        for kind in (0, 1, 3, 16, 64):
            asked = _asked("1", ("retention.ms", SET, "1"), kind=kind)
            says = "client metrics are not collected" if kind == 16 else f"Unknown resource type {kind}"
            self.assert_refused(ErrorCode.INVALID_REQUEST, says, asked)

    def test_permission_is_needed(self) -> None:
        """
        Groups that the client may not configure are unchanged, and errors in their configs are not shown.
        """
        authorizer = Denying(lambda operation, kind, name: name != "g")
        self.serving = Serving(authorizer)
        secret = _set("secret", session_timeout="1")
        for validate_only in (True, False):
            asked = (secret, _set("g", session_timeout="50000"))
            codes = self.codes(*asked, validate_only=validate_only)
            assert codes == [ErrorCode.GROUP_AUTHORIZATION_FAILED, 0]
        assert self.serving.broker.view().overrides == {group("g"): {SESSION: "50000"}}
        need = (Operation.ALTER_CONFIGS, Resource.GROUP)
        assert {asked[:2] for asked in authorizer.asked} == {need}

    def test_the_response_waits_for_all_changes(self) -> None:
        """
        It reports success or failure then.
        """
        changes = list[Deferred[None]]()

        def change(*_: object) -> Deferred[None]:
            changes.append(Deferred())
            return changes[-1]

        self.patch(self.serving.broker, "change_config", change)
        answer = self.begin(_set("g", session_timeout="50000"), _set("h", session_timeout="50000"))
        assert len(changes) == 2
        changes[1].callback(None)
        self.assertNoResult(answer)
        changes[0].errback(KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "the disk is full"))
        answers = self.successResultOf(answer).responses
        assert [(told.error_code, told.error_message) for told in answers] == [
            (ErrorCode.KAFKA_STORAGE_ERROR, "the disk is full"),
            (0, None),
        ]

    def test_a_request_may_be_empty(self) -> None:
        assert self.ask() == []
        assert self.codes(_asked("g")) == [0]


class TopicTests(AlteringTestCase):
    def setUp(self) -> None:
        self.serve()

    def serve(self, *authorizers: Any, **settings: Any) -> None:
        self.serving = Serving(*authorizers, **settings)
        self.make("t", {"retention.ms": "5", "seaweedmq.format": "batch"})

    def make(self, name: str, overrides: dict[str, str], *, internal: bool = False) -> None:
        config = TopicConfig.of(overrides)
        self.successResultOf(self.serving.broker.create_topic(NewTopic(name, 1, config, internal)))

    def config(self, name: str = "t") -> TopicConfig:
        return self.serving.broker.view().topics[name].config

    def alter(self, *changes: tuple[str, int, str | None], **more: Any) -> None:
        [answer] = self.ask(_asked("t", *changes, kind=TOPIC), **more)
        assert (answer.error_code, answer.error_message) == (0, None)

    def assert_topic_refused(self, code: ErrorCode, says: str, *changes: tuple[str, int, str | None]) -> None:
        self.assert_refused(code, says, _asked("t", *changes, kind=TOPIC))

    def test_topic_configs_are_set_and_deleted(self) -> None:
        """
        They apply at once, deleted ones have the gateway's default, and others are unchanged.
        """
        for version in VERSIONS:
            self.serve(retention_ms=77, message_max_bytes=88)
            self.alter(("retention.ms", DELETE, None), ("segment.bytes", SET, "2000000"), version=version)
            config = self.config()
            assert (config.retention_ms, config.segment_bytes, config.max_message_bytes) == (77, 2_000_000, 88)
            assert dict(config.overrides) == {"segment.bytes": "2000000", "seaweedmq.format": "batch"}, version

    def test_topic_lists_are_appended_to_and_subtracted_from(self) -> None:
        """
        Without a value of its own the list starts from the default.
        """
        policy = "cleanup.policy"
        self.alter((policy, APPEND, "compact"))
        assert self.config().cleanup_policy == ("delete", "compact")
        self.alter((policy, SUBTRACT, "delete"))
        assert self.config().cleanup_policy == ("compact",)
        self.alter((policy, SUBTRACT, "compact"))
        assert self.config().cleanup_policy == ()
        throttled = "leader.replication.throttled.replicas"
        self.alter((throttled, APPEND, "0:1"))
        self.alter((throttled, APPEND, "1:1,0:1"))
        assert self.config().overrides[throttled] == "0:1,1:1"

    def test_validate_only_changes_no_topic(self) -> None:
        """
        Errors are reported, including conflicts with other configs.
        """
        before = self.serving.broker.view()
        asked = (
            _asked("t", ("retention.ms", SET, "6"), kind=TOPIC),
            _asked("u", ("retention.ms", SET, "6"), kind=TOPIC),
        )
        codes = [0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
        assert self.codes(*asked, validate_only=True) == codes
        wrong = _asked("t", ("seaweedmq.format", DELETE, None), kind=TOPIC)
        assert self.codes(wrong, validate_only=True) == [ErrorCode.INVALID_CONFIG]
        assert self.serving.broker.view() is before

    def test_one_refused_config_refuses_its_topic(self) -> None:
        """
        Other topics are changed.
        """
        self.make("u", {})
        wrong = _asked("t", ("segment.ms", SET, "5"), ("retention.ms", SET, "-2"), kind=TOPIC)
        right = _asked("u", ("segment.ms", SET, "5"), kind=TOPIC)
        assert self.codes(wrong, right) == [ErrorCode.INVALID_CONFIG, 0]
        assert ("segment.ms" in self.config().overrides, self.config("u").segment_ms) == (False, 5)

    def test_invalid_topic_configs_are_refused(self) -> None:
        """
        They are unknown, wrong, conflicting, or cannot change.
        """
        for changes, says in (
            ([("retention", SET, "1")], "Unknown topic config name: retention"),
            (
                [("retention.ms", SET, "long")],
                "Invalid value long for configuration retention.ms: Not a number of type LONG",
            ),
            ([("compression.type", SET, "none")], "Invalid value none for configuration compression.type"),
            ([("min.compaction.lag.ms", SET, "2"), ("max.compaction.lag.ms", SET, "1")], "> max.compaction.lag.ms"),
            ([("retention.ms", APPEND, "1")], "Can't APPEND to key retention.ms because its type is not LIST."),
            ([("nothing", SUBTRACT, "1")], "Can't SUBTRACT to key nothing"),
            ([("cleanup.policy", APPEND, "foo")], "Invalid value foo for configuration cleanup.policy"),
            ([("seaweedmq.format", SET, "plain")], "is set when a topic is created, and cannot be changed"),
            ([("seaweedmq.format", DELETE, None)], "is set when a topic is created, and cannot be changed"),
        ):
            self.assert_topic_refused(ErrorCode.INVALID_CONFIG, says, *changes)

    def test_meaningless_changes_of_topics_are_refused(self) -> None:
        """
        They have an unknown operation, a config named twice, or no value.
        """
        for changes, says in (
            ([("retention.ms", 4, "1")], "Unknown operations type 4"),
            ([("retention.ms", SET, "1"), ("retention.ms", DELETE, None)], "duplicate config keys"),
            ([("retention.ms", SET, None)], "Null value not supported for : "),
        ):
            self.assert_topic_refused(ErrorCode.INVALID_REQUEST, says, *changes)

    def test_a_fixed_config_may_be_set_to_its_value(self) -> None:
        before = self.serving.broker.view()
        self.alter(("seaweedmq.format", SET, "batch"))
        assert self.serving.broker.view() is before

    def test_unknown_topics_are_refused(self) -> None:
        for name, code, says in (
            ("u", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "The topic 'u' does not exist."),
            ("", ErrorCode.INVALID_REQUEST, "Default topic resources are not allowed."),
            ("a b", ErrorCode.INVALID_TOPIC_EXCEPTION, "'a b' contains one or more characters other than"),
        ):
            for changes in ([("retention.ms", SET, "1")], []):
                self.assert_refused(code, says, _asked(name, *changes, kind=TOPIC))

    def test_internal_topics_have_configs(self) -> None:
        self.make("__consumer_offsets", {}, internal=True)
        assert self.codes(_asked("__consumer_offsets", ("max.message.bytes", SET, "7"), kind=TOPIC)) == [0]
        assert self.config("__consumer_offsets").max_message_bytes == 7

    def test_permission_on_topics_is_needed(self) -> None:
        """
        Existing and unknown topics are unchanged and look alike.
        """
        authorizer = Denying(lambda operation, kind, name: name != "t")
        self.serve(authorizer)
        for name in ("secret", "nowhere"):
            if name == "secret":
                self.make(name, {})
            for validate_only in (True, False):
                asked = (_asked(name, ("retention.ms", SET, "x"), kind=TOPIC), _asked("t", kind=TOPIC))
                codes = self.codes(*asked, validate_only=validate_only)
                assert codes == [ErrorCode.TOPIC_AUTHORIZATION_FAILED, 0]
        assert {asked[:2] for asked in authorizer.asked} == {(Operation.ALTER_CONFIGS, Resource.TOPIC)}

    def test_min_insync_replicas_are_limited_by_the_nodes(self) -> None:
        """
        The first change is logged.
        """
        events = hear_log(self)
        self.alter(("min.insync.replicas", SET, "2"), validate_only=True)
        assert events == []
        for value in ("2", "1"):
            self.alter(("min.insync.replicas", SET, "2"), ("retention.ms", SET, value))
        (told,) = [event for event in events if "what" in event]
        assert told["what"] == "min.insync.replicas 2 cannot be reached with 1 broker and counts as 1"

    def test_a_strict_gateway_refuses_too_many_replicas(self) -> None:
        """
        Values set before are no obstacle.
        """
        self.serve(replication_factor_policy="strict")
        self.make("before", {"min.insync.replicas": "2"})
        change = ("min.insync.replicas", SET, "2")
        self.assert_topic_refused(ErrorCode.INVALID_CONFIG, "cannot be reached with 1 broker", change)
        assert self.codes(_asked("before", ("retention.ms", SET, "1"), kind=TOPIC)) == [0]
