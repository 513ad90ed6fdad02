"""
AlterConfigs.
"""

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kgateway.cluster.config import TopicConfig
from kgateway.cluster.config_resource import group, topic
from kgateway.cluster.view import NewTopic
from kgateway.handlers.alter_configs import alter_configs
from kgateway.messages.alter_configs import AlterConfigsRequest, AlterConfigsResponse
from kgateway.security.permissions import Operation, Resource
from kgateway.wire.errors import ErrorCode
from tests.serving import Denying, Serving

TOPIC, LOGGER, GROUP = 2, 8, 32
VERSIONS = range(3)
SESSION, HEARTBEAT = "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"

Asked = AlterConfigsRequest.Resource
Answer = AlterConfigsResponse.Response


def _asked(kind: int, name: str, *configs: tuple[str, str | None]) -> Asked:
    return Asked(
        resource_type=kind,
        resource_name=name,
        configs=[Asked.Config(name=key, value=value) for key, value in configs],
    )


class AlterConfigsTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.serve()

    def serve(self, *authorizers: Any, **settings: Any) -> None:
        self.serving = Serving(*authorizers, **settings)
        config = TopicConfig.of({"retention.ms": "5", "segment.ms": "6", "seaweedmq.format": "batch"})
        self.successResultOf(self.serving.broker.create_topic(NewTopic("t", 1, config)))

    def ask(self, *resources: Asked, version: int = 2, validate_only: bool = False) -> list[Answer]:
        request = AlterConfigsRequest(resources=list(resources), validate_only=validate_only)
        answers: list[Answer]
        answers = self.successResultOf(self.serving.ask(alter_configs, request, version)).responses
        told = [(answer.resource_type, answer.resource_name) for answer in answers]
        assert told == [(asked.resource_type, asked.resource_name) for asked in resources]
        return answers

    def codes(self, *resources: Asked, **more: Any) -> list[int]:
        return [answer.error_code for answer in self.ask(*resources, **more)]

    def assert_refused(self, code: ErrorCode, says: str, asked: Asked) -> None:
        before = self.serving.broker.view()
        for version in VERSIONS:
            for validate_only in (True, False):
                [answer] = self.ask(asked, version=version, validate_only=validate_only)
                assert answer.error_code == code, answer.error_message
                assert says in str(answer.error_message)
        assert self.serving.broker.view() is before

    def test_versions_of_kafka_4_3_are_served(self) -> None:
        assert alter_configs.versions == VERSIONS

    def test_topic_configs_are_replaced(self) -> None:
        """
        Named ones are set, all others return to their default, except for those that cannot change.
        """
        for version in VERSIONS:
            self.serve(retention_ms=77)
            [answer] = self.ask(_asked(TOPIC, "t", ("segment.ms", "9")), version=version)
            assert (answer.error_code, answer.error_message) == (0, None)
            view = self.serving.broker.view()
            assert view.overrides_of(topic("t")) == {"segment.ms": "9", "seaweedmq.format": "batch"}, version
            config = view.topics["t"].config
            assert (config.segment_ms, config.retention_ms, config.seaweedmq_format) == (9, 77, "batch")

    def test_group_configs_are_replaced(self) -> None:
        """
        The groups need not exist.
        """
        for version in VERSIONS:
            self.serve()
            broker = self.serving.broker
            both = _asked(GROUP, "g", (SESSION, "50000"), (HEARTBEAT, "6000"))
            assert self.codes(both, version=version) == [0]
            assert broker.view().overrides == {group("g"): {SESSION: "50000", HEARTBEAT: "6000"}}, version
            assert self.codes(_asked(GROUP, "g", (SESSION, "55000")), version=version) == [0]
            assert broker.view().overrides == {group("g"): {SESSION: "55000"}}, version
            assert self.codes(_asked(GROUP, "g"), version=version) == [0]
            assert broker.view().overrides == {}, version

    def test_validate_only_changes_nothing(self) -> None:
        before = self.serving.broker.view()
        asked = (_asked(TOPIC, "t"), _asked(GROUP, "g", (SESSION, "50000")))
        assert self.codes(*asked, validate_only=True) == [0, 0]
        assert self.serving.broker.view() is before

    def test_one_refused_config_refuses_its_resource(self) -> None:
        twice = (("segment.ms", "1"), ("segment.ms", "2"))
        for code, says, asked in (
            (ErrorCode.INVALID_REQUEST, "Error due to duplicate config keys", _asked(TOPIC, "t", *twice)),
            (
                ErrorCode.INVALID_REQUEST,
                "Null value not supported for : segment.ms",
                _asked(TOPIC, "t", ("segment.ms", None)),
            ),
            (ErrorCode.INVALID_REQUEST, "Unknown resource type 8", _asked(LOGGER, "1", ("root", "INFO"))),
            (
                ErrorCode.INVALID_REQUEST,
                "Default group resources are not allowed.",
                _asked(GROUP, "", (SESSION, "50000")),
            ),
            (ErrorCode.INVALID_CONFIG, "Unknown topic config", _asked(TOPIC, "t", ("segment.m", "1"))),
            (ErrorCode.INVALID_CONFIG, "Value must be at least 1", _asked(TOPIC, "t", ("segment.ms", "0"))),
            (ErrorCode.INVALID_CONFIG, "cannot be changed", _asked(TOPIC, "t", ("seaweedmq.format", "plain"))),
            (
                ErrorCode.INVALID_CONFIG,
                "greater than or equal to group.consumer.min",
                _asked(GROUP, "g", (SESSION, "1")),
            ),
            (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "The topic 'u' does not exist.", _asked(TOPIC, "u")),
        ):
            self.assert_refused(code, says, asked)

    def test_a_resource_named_twice_is_not_changed(self) -> None:
        """
        One of another type with the same name is another resource.
        """
        asked = [_asked(TOPIC, "t"), _asked(GROUP, "t", (SESSION, "50000")), _asked(TOPIC, "t")]
        assert self.codes(*asked) == [ErrorCode.INVALID_REQUEST, 0, ErrorCode.INVALID_REQUEST]
        assert self.serving.broker.view().topics["t"].config.retention_ms == 5

    def test_permission_is_needed(self) -> None:
        """
        Resources that the client may not configure are unchanged.
        """
        authorizer = Denying()
        self.serve(authorizer)
        before = self.serving.broker.view()
        codes = self.codes(_asked(TOPIC, "t"), _asked(GROUP, "g", (SESSION, "50000")))
        assert codes == [ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.GROUP_AUTHORIZATION_FAILED]
        assert self.serving.broker.view() is before
        operation = Operation.ALTER_CONFIGS
        assert authorizer.asked == [(operation, Resource.TOPIC, "t"), (operation, Resource.GROUP, "g")]
