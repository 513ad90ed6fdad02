"""
DescribeConfigs.
"""

from collections.abc import Sequence
from typing import Any

from twisted.logger import LogPublisher
from twisted.trial.unittest import SynchronousTestCase

from handlers.describe_configs import describe_configs
from kgateway.cluster.config import TopicConfig
from kgateway.cluster.config_resource import broker, group
from kgateway.cluster.config_table import TOPIC_CONFIGS
from kgateway.cluster.view import NewTopic
from kgateway.loggers import ProcessLog
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
    def test_versions(self) -> None:
        """
        The versions of Kafka 4.3 are served.
        """
        assert describe_configs.versions == VERSIONS

    def test_all(self) -> None:
        """
        All configs of Kafka come, those that were set and those that were not.
        """
        self.make("a", retention_ms="5")
        for version in VERSIONS:
            configs = self.configs(TOPIC, "a", version=version)
            assert list(TOPIC_CONFIGS) == list(configs), version
            kept, rolled = configs["retention.ms"], configs["segment.ms"]
            assert (kept.value, kept.config_source) == ("5", 1), version
            assert (rolled.value, rolled.config_source) == ("604800000", 5), version
            assert (kept.read_only, kept.is_sensitive) == (False, False), version

    def test_settings(self) -> None:
        """
        What the gateway's settings decide for all topics is marked as the broker's.
        """
        self.serving = Serving(message_max_bytes=77)
        self.make("a")
        config = self.configs(TOPIC, "a")["max.message.bytes"]
        assert (config.value, config.config_source) == ("77", 4)

    def test_keys(self) -> None:
        """
        Who names configs gets these; no names are all names; what is no config is left out.
        """
        self.make("a")
        some, empty = self.ask(_resource(TOPIC, "a", ["segment.ms", "nope"]), _resource(TOPIC, "a", []))
        assert [config.name for config in some.configs] == ["segment.ms"]
        assert len(TOPIC_CONFIGS) == len(empty.configs)

    def test_synonyms(self) -> None:
        """
        Synonyms come when asked for, what decides the value first.
        """
        self.make("a", max_message_bytes="5")
        for version in VERSIONS:
            config = self.configs(TOPIC, "a", version=version, include_synonyms=True)["max.message.bytes"]
            synonyms = [(synonym.name, synonym.value, synonym.source) for synonym in config.synonyms]
            wanted = [("max.message.bytes", "5", 1), ("message.max.bytes", "1048588", 5)]
            assert wanted == synonyms, version
        assert self.configs(TOPIC, "a")["max.message.bytes"].synonyms == []

    def test_types(self) -> None:
        """
        From v3 on types come, and what a config is for when asked.
        """
        self.make("a")
        for version in (3, 4):
            config = self.configs(TOPIC, "a", version=version, include_documentation=True)["retention.ms"]
            assert config.config_type == 5, version
            assert TOPIC_CONFIGS["retention.ms"].meaning == config.documentation, version
            assert self.configs(TOPIC, "a", version=version)["retention.ms"].documentation is None, version

    def test_unknown(self) -> None:
        """
        A topic that is not there has no configs, and one that cannot be, neither.
        """
        self.assert_refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, TOPIC, "x", "there is no topic x")
        self.assert_refused(ErrorCode.INVALID_TOPIC_EXCEPTION, TOPIC, "x y", "'x y'")

    def test_denied(self) -> None:
        """
        Whose configs may not be seen, it is not told whether they are there; other resources are answered.
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
    def test_own(self) -> None:
        """
        A gateway tells its own settings by Kafka's names; they cannot be changed while it runs.
        """
        self.serving = Serving(num_partitions=9)
        for version in VERSIONS:
            config = self.configs(BROKER, "1", version=version)["num.partitions"]
            assert (config.value, config.config_source, config.read_only) == ("9", 4, True), version

    def test_others(self) -> None:
        """
        It does not know those of others.
        """
        for kind, expected in ((BROKER, "expected 1 or empty string, but"), (LOGGER, "expected 1 but")):
            self.assert_refused(ErrorCode.INVALID_REQUEST, kind, "2", f"Unexpected broker id, {expected} received 2")
            self.assert_refused(ErrorCode.INVALID_REQUEST, kind, "x", "Broker id must be an integer, but it is: x")

    def test_all_brokers(self) -> None:
        """
        What was set for all brokers at run time is told without an id, and nothing else.
        """
        assert self.configs(BROKER, "") == {}
        self.set_for_broker("", **{"log.roll.ms": "77", "log.segment.bytes": "2000000"})
        self.set_for_broker("1", **{"log.roll.ms": "88"})
        for version in VERSIONS:
            found = self.configs(BROKER, "", version=version, include_synonyms=True).values()
            told = {config.name: (config.value, config.config_source, config.read_only) for config in found}
            assert told == {"log.roll.ms": ("77", 3, False), "log.segment.bytes": ("2000000", 3, False)}, version
            assert [len(config.synonyms) for config in found] == [1, 1], version

    def test_at_run_time(self) -> None:
        """
        What was set at run time holds, for this broker before what was set for all.
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

    def test_itself(self) -> None:
        """
        A broker tells where its partitions are.
        """
        config = self.configs(BROKER, "1")["log.dirs"]
        assert (config.value, config.config_source, config.read_only) == ("memory", 4, True)

    def test_denied(self) -> None:
        """
        Who may not see the configs of the cluster does not see those of a broker.
        """
        need = (Operation.DESCRIBE_CONFIGS, Resource.CLUSTER)
        self.serving = Serving(Denying(lambda operation, kind, _: (operation, kind) == need))
        for name in ("1", "2", ""):
            self.assert_refused(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, BROKER, name, "may not DESCRIBE_CONFIGS")


class GroupTests(DescribeConfigsTestCase):
    def configure(self, group_id: str, **overrides: str) -> None:
        given = {key.replace("_", "."): value for key, value in overrides.items()}
        self.successResultOf(self.serving.broker.change_config(group(group_id), lambda _: given))

    def test_all(self) -> None:
        """
        All configs of a group come, those that were set and those that were not, be the group there or not.
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

    def test_synonyms(self) -> None:
        """
        Behind what is set for a group stand the gateway's setting, and its default.
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

    def test_no_id(self) -> None:
        """
        There are no configs for all groups at once.
        """
        self.assert_refused(ErrorCode.INVALID_REQUEST, GROUP, "", "Group name must not be empty")

    def test_denied(self) -> None:
        """
        Who may not see the configs of a group does not see them, whether it is there or not.
        """
        need = (Operation.DESCRIBE_CONFIGS, Resource.GROUP)
        self.serving = Serving(Denying(lambda operation, kind, name: (operation, kind) == need and name != "g"))
        for name in ("secret", ""):
            self.assert_refused(ErrorCode.GROUP_AUTHORIZATION_FAILED, GROUP, name, "may not DESCRIBE_CONFIGS")
        assert self.configs(GROUP, "g")


class OtherTests(DescribeConfigsTestCase):
    def test_other_resources(self) -> None:
        """
        Client metrics and what Kafka does not know have no configs here.
        """
        self.assert_refused(ErrorCode.INVALID_REQUEST, METRICS, "m", "client metrics are not collected")
        for kind in (0, 1, 3, 64):
            self.assert_refused(ErrorCode.INVALID_REQUEST, kind, "1", f"Unknown resource type {kind}")


class LoggerTests(DescribeConfigsTestCase):
    def test_level(self) -> None:
        """
        There is one logger, with the level of the process in Kafka's words.
        """
        levels = LogLevels(LogPublisher(), "critical")
        self.serving.parts.service(ProcessLog).levels = levels
        for level, word in (("critical", "FATAL"), ("warn", "WARN"), ("debug", "DEBUG")):
            levels.set(level)
            [(name, config)] = self.configs(LOGGER, "1").items()
            assert (name, config.value, config.config_source, config.read_only) == ("root", word, 6, False)

    def test_no_process(self) -> None:
        """
        Within another program there is no log of the gateway's own; nor is there one of all brokers.
        """
        self.assert_refused(ErrorCode.INVALID_REQUEST, LOGGER, "1", "a part of another program")
        self.assert_refused(ErrorCode.INVALID_REQUEST, LOGGER, "", "Broker id must not be empty")

    def test_denied(self) -> None:
        """
        Who may not see the configs of the cluster does not see levels.
        """
        self.serving = Serving(Denying())
        self.assert_refused(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, LOGGER, "1", "may not DESCRIBE_CONFIGS")
