"""
DescribeConfigs.
"""

from collections.abc import Sequence
from typing import Any

from twisted.logger import LogPublisher
from twisted.trial.unittest import SynchronousTestCase

from kgateway.admin.log_levels import ProcessLog
from kgateway.cluster.config import TopicConfig
from kgateway.cluster.config_resource import broker, group
from kgateway.cluster.config_table import TOPIC_CONFIGS
from kgateway.cluster.view import NewTopic
from kgateway.handlers.describe_configs import describe_configs
from kgateway.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResponse
from kgateway.observe.levels import LogLevels
from kgateway.security.permissions import Operation, Resource
from kgateway.wire.errors import ErrorCode
from tests.serving import Denying, Serving

VERSIONS = range(1, 5)
TOPIC, BROKER, LOGGER, METRICS, GROUP = 2, 4, 8, 16, 32
Config = DescribeConfigsResponse.Result.Config


def _resource(kind: int, name: str, keys: Sequence[str] | None = None) -> DescribeConfigsRequest.Resource:
    names = None if keys is None else list(keys)
    return DescribeConfigsRequest.Resource(resource_type=kind, resource_name=name, configuration_keys=names)


class DescribeConfigsTestCase(SynchronousTestCase):
    def setUp(self) -> None:
        self.serving = Serving()

    def make(self, name: str, **overrides: str) -> None:
        config = TopicConfig.of({key.replace("_", "."): value for key, value in overrides.items()})
        self.successResultOf(self.serving.broker.create_topic(NewTopic(name, 1, config)))

    def set_for_broker(self, name: str, **values: str) -> None:
        self.successResultOf(self.serving.broker.change_config(broker(name), lambda _: values))

    def ask(
        self, *resources: DescribeConfigsRequest.Resource, version: int = 4, **more: Any
    ) -> list[DescribeConfigsResponse.Result]:
        request = DescribeConfigsRequest(resources=list(resources), **more)
        results: list[DescribeConfigsResponse.Result]
        results = self.successResultOf(self.serving.ask(describe_configs, request, version)).results
        return results

    def configs(self, kind: int, name: str, **more: Any) -> dict[str, Config]:
        [result] = self.ask(_resource(kind, name), **more)
        assert result.error_code == 0, result.error_message
        return {config.name: config for config in result.configs}

    def assert_refused(self, code: ErrorCode, kind: int, name: str, says: str) -> None:
        for version in VERSIONS:
            [result] = self.ask(_resource(kind, name), version=version)
            told = (result.error_code, result.resource_type, result.resource_name, result.configs)
            assert (code, kind, name, []) == told, version
            assert says in str(result.error_message)


class TopicTests(DescribeConfigsTestCase):
    def test_versions_of_kafka_4_3_are_served(self) -> None:
        assert describe_configs.versions == VERSIONS

    def test_all_topic_configs_are_listed(self) -> None:
        """
        Kafka's configs are there whether they were set or not.
        """
        self.make("a", retention_ms="5")
        for version in VERSIONS:
            configs = self.configs(TOPIC, "a", version=version)
            assert list(TOPIC_CONFIGS) == list(configs), version
            kept, rolled = configs["retention.ms"], configs["segment.ms"]
            assert (kept.value, kept.config_source) == ("5", 1), version
            assert (rolled.value, rolled.config_source) == ("604800000", 5), version
            assert (kept.read_only, kept.is_sensitive) == (False, False), version

    def test_settings_are_broker_configs(self) -> None:
        """
        They apply to all topics.
        """
        self.serving = Serving(message_max_bytes=77)
        self.make("a")
        config = self.configs(TOPIC, "a")["max.message.bytes"]
        assert (config.value, config.config_source) == ("77", 4)

    def test_named_configs_are_returned(self) -> None:
        """
        No names mean all, and unknown ones are left out.
        """
        self.make("a")
        some, empty = self.ask(_resource(TOPIC, "a", ["segment.ms", "nope"]), _resource(TOPIC, "a", []))
        assert [config.name for config in some.configs] == ["segment.ms"]
        assert len(TOPIC_CONFIGS) == len(empty.configs)

    def test_synonyms_are_ordered_by_precedence(self) -> None:
        """
        They are returned on request.
        """
        self.make("a", max_message_bytes="5")
        for version in VERSIONS:
            config = self.configs(TOPIC, "a", version=version, include_synonyms=True)["max.message.bytes"]
            synonyms = [(synonym.name, synonym.value, synonym.source) for synonym in config.synonyms]
            wanted = [("max.message.bytes", "5", 1), ("message.max.bytes", "1048588", 5)]
            assert wanted == synonyms, version
        assert self.configs(TOPIC, "a")["max.message.bytes"].synonyms == []

    def test_types_and_documentation_are_returned(self) -> None:
        """
        Types are there from v3 on, the documentation on request.
        """
        self.make("a")
        for version in (3, 4):
            config = self.configs(TOPIC, "a", version=version, include_documentation=True)["retention.ms"]
            assert config.config_type == 5, version
            assert TOPIC_CONFIGS["retention.ms"].meaning == config.documentation, version
            assert self.configs(TOPIC, "a", version=version)["retention.ms"].documentation is None, version

    def test_unknown_topics_have_no_configs(self) -> None:
        """
        Neither have impossible names.
        """
        self.assert_refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, TOPIC, "x", "there is no topic x")
        self.assert_refused(ErrorCode.INVALID_TOPIC_EXCEPTION, TOPIC, "x y", "'x y'")

    def test_permission_is_needed(self) -> None:
        """
        Without it existing and unknown resources look alike; other resources are answered.
        """
        need = (Operation.DESCRIBE_CONFIGS, Resource.TOPIC)
        self.serving = Serving(Denying(lambda operation, kind, name: (operation, kind) == need and name != "a"))
        self.make("a")
        self.make("secret")
        for name in ("secret", "absent"):
            self.assert_refused(ErrorCode.TOPIC_AUTHORIZATION_FAILED, TOPIC, name, "may not DESCRIBE_CONFIGS")
        results = self.ask(_resource(TOPIC, "secret"), _resource(TOPIC, "a"), _resource(BROKER, "1"))
        assert [result.error_code for result in results] == [ErrorCode.TOPIC_AUTHORIZATION_FAILED, 0, 0]


class BrokerTests(DescribeConfigsTestCase):
    def test_a_gateway_describes_its_own_settings(self) -> None:
        """
        They have Kafka's names, and are read-only.
        """
        self.serving = Serving(num_partitions=9)
        for version in VERSIONS:
            config = self.configs(BROKER, "1", version=version)["num.partitions"]
            assert (config.value, config.config_source, config.read_only) == ("9", 4, True), version

    def test_other_brokers_are_refused(self) -> None:
        for kind, expected in ((BROKER, "expected 1 or empty string, but"), (LOGGER, "expected 1 but")):
            self.assert_refused(ErrorCode.INVALID_REQUEST, kind, "2", f"Unexpected broker id, {expected} received 2")
            self.assert_refused(ErrorCode.INVALID_REQUEST, kind, "x", "Broker id must be an integer, but it is: x")

    def test_defaults_of_all_brokers(self) -> None:
        """
        Without an id the response has only what was set for all brokers at run time.
        """
        assert self.configs(BROKER, "") == {}
        self.set_for_broker("", **{"log.roll.ms": "77", "log.segment.bytes": "2000000"})
        self.set_for_broker("1", **{"log.roll.ms": "88"})
        for version in VERSIONS:
            found = self.configs(BROKER, "", version=version, include_synonyms=True).values()
            told = {config.name: (config.value, config.config_source, config.read_only) for config in found}
            assert told == {"log.roll.ms": ("77", 3, False), "log.segment.bytes": ("2000000", 3, False)}, version
            assert [len(config.synonyms) for config in found] == [1, 1], version

    def test_run_time_configs_are_shown(self) -> None:
        """
        Those of this broker come before those of all.
        """
        self.serving = Serving(segment_bytes=5_000_000)
        self.set_for_broker("", **{"log.roll.ms": "77", "log.segment.bytes": "2000000"})
        self.set_for_broker("1", **{"log.segment.bytes": "3000000"})
        configs = self.configs(BROKER, "1", include_synonyms=True)
        size = configs["log.segment.bytes"]
        assert (size.value, size.config_source, size.read_only) == ("3000000", 2, False)
        assert [(synonym.value, synonym.source) for synonym in size.synonyms] == [
            ("3000000", 2),
            ("2000000", 3),
            ("5000000", 4),
            ("1073741824", 5),
        ]
        assert (configs["log.roll.ms"].value, configs["log.roll.ms"].config_source) == ("77", 3)

    def test_a_broker_shows_its_log_directory(self) -> None:
        """
        Its source is that of the setting `broker`.
        """
        for serving, source in ((Serving(), 5), (Serving(broker="memory:"), 4)):
            self.serving = serving
            config = self.configs(BROKER, "1")["log.dirs"]
            assert (config.value, config.config_source, config.read_only) == ("memory", source, True)

    def test_permission_on_the_cluster_is_needed(self) -> None:
        need = (Operation.DESCRIBE_CONFIGS, Resource.CLUSTER)
        self.serving = Serving(Denying(lambda operation, kind, _: (operation, kind) == need))
        for name in ("1", "2", ""):
            self.assert_refused(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, BROKER, name, "may not DESCRIBE_CONFIGS")


class GroupTests(DescribeConfigsTestCase):
    def configure(self, group_id: str, **overrides: str) -> None:
        given = {key.replace("_", "."): value for key, value in overrides.items()}
        self.successResultOf(self.serving.broker.change_config(group(group_id), lambda _: given))

    def test_all_group_configs_are_listed(self) -> None:
        """
        They are there whether they were set or not, and whether the group exists or not.
        """
        self.configure("g", consumer_session_timeout_ms=" 50000")
        for version in VERSIONS:
            configs = self.configs(GROUP, "g", version=version)
            told = {name: (config.value, config.config_source) for name, config in configs.items()}
            assert told == {
                "consumer.session.timeout.ms": ("50000", 8),
                "consumer.heartbeat.interval.ms": ("5000", 5),
                "consumer.assignment.interval.ms": ("1000", 5),
            }, version
            assert not any(config.read_only or config.is_sensitive for config in configs.values())
            others = self.configs(GROUP, "absent", version=version).values()
            assert {config.config_source for config in others} == {5}, version

    def test_synonyms_of_group_configs(self) -> None:
        """
        They are the gateway's setting and its default.
        """
        self.serving = Serving(group_consumer_session_timeout_ms=46_000)
        self.configure("g", consumer_session_timeout_ms="50000")
        shown = self.configs(GROUP, "g", include_synonyms=True, include_documentation=True)
        config = shown["consumer.session.timeout.ms"]
        assert [(synonym.name, synonym.value, synonym.source) for synonym in config.synonyms] == [
            ("consumer.session.timeout.ms", "50000", 8),
            ("group.consumer.session.timeout.ms", "46000", 4),
            ("group.consumer.session.timeout.ms", "45000", 5),
        ]
        assert config.config_type == 3
        assert config.documentation
        other = self.configs(GROUP, "other")["consumer.session.timeout.ms"]
        assert (other.value, other.config_source) == ("46000", 4)

    def test_a_group_id_is_needed(self) -> None:
        self.assert_refused(ErrorCode.INVALID_REQUEST, GROUP, "", "Group name must not be empty")

    def test_permission_on_the_group_is_needed(self) -> None:
        """
        The group need not exist.
        """
        need = (Operation.DESCRIBE_CONFIGS, Resource.GROUP)
        self.serving = Serving(Denying(lambda operation, kind, name: (operation, kind) == need and name != "g"))
        for name in ("secret", ""):
            self.assert_refused(ErrorCode.GROUP_AUTHORIZATION_FAILED, GROUP, name, "may not DESCRIBE_CONFIGS")
        assert self.configs(GROUP, "g")


class OtherTests(DescribeConfigsTestCase):
    def test_other_resource_types_are_refused(self) -> None:
        """
        They are client metrics and types unknown to Kafka.
        """
        self.assert_refused(ErrorCode.INVALID_REQUEST, METRICS, "m", "client metrics are not collected")
        for kind in (0, 1, 3, 64):
            self.assert_refused(ErrorCode.INVALID_REQUEST, kind, "1", f"Unknown resource type {kind}")


class LoggerTests(DescribeConfigsTestCase):
    def test_the_logger_has_the_level_of_the_process(self) -> None:
        """
        There is one logger, and the level has Kafka's name.
        """
        levels = LogLevels(LogPublisher(), "critical")
        self.serving.parts.service(ProcessLog).levels = levels
        for level, word in (("critical", "FATAL"), ("warn", "WARN"), ("debug", "DEBUG")):
            levels.set(level)
            [(name, config)] = self.configs(LOGGER, "1").items()
            assert (name, config.value, config.config_source, config.read_only) == ("root", word, 6, False)

    def test_an_embedded_gateway_has_no_logger(self) -> None:
        """
        Neither have all brokers together.
        """
        self.assert_refused(ErrorCode.INVALID_REQUEST, LOGGER, "1", "part of another program")
        self.assert_refused(ErrorCode.INVALID_REQUEST, LOGGER, "", "Broker id must not be empty")

    def test_permission_on_the_cluster_is_needed_for_levels(self) -> None:
        self.serving = Serving(Denying())
        self.assert_refused(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, LOGGER, "1", "may not DESCRIBE_CONFIGS")
