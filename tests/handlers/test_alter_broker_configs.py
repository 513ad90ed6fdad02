"""
AlterConfigs and IncrementalAlterConfigs for brokers and loggers.
"""

from typing import Any

from twisted.logger import LogPublisher
from twisted.trial.unittest import SynchronousTestCase

from kgateway.admin.log_levels import ProcessLog
from kgateway.cluster.config_resource import broker
from kgateway.cluster.view import Topic
from kgateway.handlers.alter_configs import alter_configs
from kgateway.handlers.create_topics import create_topics
from kgateway.handlers.incremental_alter_configs import incremental_alter_configs
from kgateway.messages.alter_configs import AlterConfigsRequest
from kgateway.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from kgateway.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from kgateway.observe.levels import LogLevels
from kgateway.security.permissions import Operation, Resource
from kgateway.wire.errors import ErrorCode
from tests.serving import Denying, Serving

BROKER, LOGGER = 4, 8
SET, DELETE, APPEND, SUBTRACT = range(4)
Told = tuple[int, str | None]
Asked = IncrementalAlterConfigsRequest.Resource
Whole = AlterConfigsRequest.Resource


class AlteringTestCase(SynchronousTestCase):
    def setUp(self) -> None:
        self.serving = Serving()

    def alter(self, kind: int, name: str, *changes: tuple[str, int, str | None], validate_only: bool = False) -> Told:
        configs = [Asked.Config(name=key, config_operation=what, value=value) for key, what, value in changes]
        resource = Asked(resource_type=kind, resource_name=name, configs=configs)
        request = IncrementalAlterConfigsRequest(resources=[resource], validate_only=validate_only)
        return self._told(self.serving.ask(incremental_alter_configs, request, 1))

    def replace(self, kind: int, name: str, **values: str) -> Told:
        configs = [Whole.Config(name=key.replace("_", "."), value=value) for key, value in values.items()]
        resource = Whole(resource_type=kind, resource_name=name, configs=configs)
        return self._told(
            self.serving.ask(alter_configs, AlterConfigsRequest(resources=[resource], validate_only=False), 2)
        )

    def _told(self, answer: Any) -> Told:
        [response] = self.successResultOf(answer).responses
        return response.error_code, response.error_message


class BrokerTests(AlteringTestCase):
    def make(self, name: str, **config: str) -> None:
        made = self.create(name, **config)
        assert made.error_code == 0, made.error_message

    def create(self, name: str, **config: str) -> CreateTopicsResponse.Topic:
        configs = [
            CreateTopicsRequest.Topic.Config(name=key.replace("_", "."), value=value) for key, value in config.items()
        ]
        wanted = CreateTopicsRequest.Topic(
            name=name, num_partitions=1, replication_factor=1, assignments=[], configs=configs
        )
        request = CreateTopicsRequest(topics=[wanted], timeout_ms=1000)
        [made] = self.successResultOf(self.serving.ask(create_topics, request, 7)).topics
        assert isinstance(made, CreateTopicsResponse.Topic)
        return made

    def topic(self, name: str) -> Topic:
        return self.serving.broker.view().topics[name]

    def of(self, name: str) -> dict[str, str]:
        return dict(self.serving.broker.view().overrides_of(broker(name)))

    def test_topics_inherit_broker_configs(self) -> None:
        """
        This broker's config beats that of all brokers, which beats the gateway's setting; a topic's own config beats
        all. Topics created later inherit it too.
        """
        self.serving = Serving(retention_ms=100)
        self.make("before")
        self.make("own", retention_ms="5")
        told = list[list[int]]()
        for name, what, value in (("", SET, "200"), ("1", SET, "300"), ("1", DELETE, None), ("", DELETE, None)):
            assert self.alter(BROKER, name, ("log.retention.ms", what, value)) == (0, None)
            self.make(f"after{len(told)}")
            told.append([self.topic(topic).config.retention_ms for topic in ("before", f"after{len(told)}", "own")])
        assert told == [[200, 200, 5], [300, 300, 5], [200, 200, 5], [100, 100, 5]]
        assert self.topic("before").config.overrides == {}

    def test_open_partitions_inherit_at_once(self) -> None:
        self.make("orders")
        partition = self.serving.broker.partition(self.topic("orders").id, 0)
        self.alter(BROKER, "", ("message.max.bytes", SET, "7"))
        assert partition.topic.config.max_message_bytes == 7
        assert partition.topic is self.topic("orders")

    def test_a_topic_inherits_again_once_its_own_config_is_deleted(self) -> None:
        self.make("orders", retention_ms="5")
        self.alter(BROKER, "", ("log.retention.ms", SET, "200"))
        assert self.alter(2, "orders", ("retention.ms", DELETE, None)) == (0, None)
        assert self.topic("orders").config.retention_ms == 200

    def test_lists_are_appended_to_and_subtracted_from(self) -> None:
        self.make("orders")
        assert self.alter(BROKER, "", ("log.cleanup.policy", APPEND, "compact")) == (0, None)
        assert self.topic("orders").config.cleanup_policy == ("delete", "compact")
        assert self.alter(BROKER, "", ("log.cleanup.policy", SUBTRACT, "delete")) == (0, None)
        assert self.topic("orders").config.cleanup_policy == ("compact",)

    def test_throttles_are_stored(self) -> None:
        """
        kafka-reassign-partitions sets them for one broker and for all, and reads them as from Kafka.
        """
        rates = [f"{side}.replication.throttled.rate" for side in ("leader", "follower")]
        for rate in (*rates, "replica.alter.log.dirs.io.max.bytes.per.second"):
            for name in ("1", ""):
                assert self.alter(BROKER, name, (rate, SET, "1000")) == (0, None)
                assert self.of(name)[rate] == "1000"
            reason = f"Invalid value -1 for configuration {rate}: Value must be at least 0"
            assert self.alter(BROKER, "1", (rate, SET, "-1")) == (ErrorCode.INVALID_REQUEST, reason)
            assert self.alter(BROKER, "1", (rate, DELETE, None)) == (0, None)
        assert self.of("1") == {}

    def test_alter_configs_replaces_everything(self) -> None:
        """
        Configs that are not named are deleted.
        """
        self.alter(BROKER, "1", ("log.retention.ms", SET, "200"))
        assert self.replace(BROKER, "1", log_roll_ms="77") == (0, None)
        assert self.of("1") == {"log.roll.ms": "77"}

    def test_validate_only_changes_nothing(self) -> None:
        """
        Errors are reported.
        """
        before = self.serving.broker.view()
        assert self.alter(BROKER, "", ("log.roll.ms", SET, "77"), validate_only=True) == (0, None)
        assert self.alter(BROKER, "", ("log.roll.ms", SET, "x"), validate_only=True)[0] == ErrorCode.INVALID_REQUEST
        assert self.serving.broker.view() is before

    def test_invalid_changes_are_refused(self) -> None:
        """
        They are settings, wrong values, meaningless names and other brokers.
        """
        before = self.serving.broker.view()
        dynamically = "Cannot update these configs dynamically: "
        for name, changes, code, says in (
            ("1", [("num.partitions", SET, "9")], ErrorCode.INVALID_REQUEST, f"{dynamically}[num.partitions]"),
            (
                "",
                [("log.dirs", SET, "9"), ("node.id", SET, "9")],
                ErrorCode.INVALID_REQUEST,
                f"{dynamically}[log.dirs, node.id]",
            ),
            (
                "1",
                [("log.roll.ms", SET, "0")],
                ErrorCode.INVALID_REQUEST,
                "Invalid value 0 for configuration log.roll.ms: Value must be at least 1",
            ),
            ("", [("log.rolls", SET, "9")], ErrorCode.INVALID_CONFIG, "Unknown broker config name: log.rolls"),
            ("2", [], ErrorCode.INVALID_REQUEST, "Unexpected broker id, expected 1, but received 2"),
            ("01", [], ErrorCode.INVALID_REQUEST, "Unexpected broker id, expected 1, but received 01"),
            ("x", [], ErrorCode.INVALID_REQUEST, "Node id must be an integer, but it is: x"),
        ):
            told_code, told = self.alter(BROKER, name, *changes)
            assert (told_code, str(told)[: len(says)]) == (code, says)
        assert self.serving.broker.view() is before

    def test_a_config_that_conflicts_with_a_topic_is_refused(self) -> None:
        self.make("orders", min_compaction_lag_ms="100")
        code, told = self.alter(BROKER, "", ("log.cleaner.max.compaction.lag.ms", SET, "50"))
        assert code == ErrorCode.INVALID_CONFIG
        assert str(told).startswith("topic orders would not accept the new default: conflict topic config setting")
        assert self.alter(BROKER, "", ("log.cleaner.max.compaction.lag.ms", SET, "100")) == (0, None)

    def test_a_new_topic_that_conflicts_with_defaults_is_refused(self) -> None:
        """
        The response has the broker's defaults.
        """
        self.alter(BROKER, "", ("log.cleaner.max.compaction.lag.ms", SET, "50"))
        assert self.create("orders", min_compaction_lag_ms="100").error_code == ErrorCode.INVALID_CONFIG
        told = {config.name: (config.value, config.config_source) for config in self.create("orders").configs or []}
        assert told["max.compaction.lag.ms"] == ("50", 3)

    def test_permission_is_needed(self) -> None:
        """
        A client that may not alter the configs of the cluster changes nothing, and does not learn what is wrong with
        them.
        """
        need = (Operation.ALTER_CONFIGS, Resource.CLUSTER)
        self.serving = Serving(Denying(lambda operation, resource, _: (operation, resource) == need))
        before = self.serving.broker.view()
        for kind, name in ((BROKER, ""), (BROKER, "1"), (BROKER, "2"), (LOGGER, "1")):
            assert self.alter(kind, name, ("x", SET, "x"))[0] == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        assert self.serving.broker.view() is before


class LoggerTests(AlteringTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.levels = LogLevels(LogPublisher(), "info")
        self.serving.parts.service(ProcessLog).levels = self.levels

    def test_levels_are_set(self) -> None:
        """
        They have Kafka's names, and are not stored as configs.
        """
        for word, level in (
            ("TRACE", "debug"),
            ("WARN", "warn"),
            ("ERROR", "error"),
            ("FATAL", "critical"),
            ("INFO", "info"),
        ):
            assert self.alter(LOGGER, "1", ("root", SET, word)) == (0, None)
            assert self.levels.level == level
        assert self.alter(LOGGER, "1") == (0, None)
        assert self.levels.level == "info"
        assert self.serving.broker.view().overrides == {}

    def test_validate_only_sets_no_level(self) -> None:
        assert self.alter(LOGGER, "1", ("root", SET, "WARN"), validate_only=True) == (0, None)
        assert self.levels.level == "info"

    def test_invalid_levels_are_refused(self) -> None:
        """
        They are other loggers, other levels, none, and loggers of other gateways.
        """
        wrong = "as it is not a supported log level. Valid log levels are DEBUG, ERROR, FATAL, INFO, TRACE, WARN"
        for name, changes, code, says in (
            (
                "1",
                [("root", SET, "debug")],
                ErrorCode.INVALID_CONFIG,
                f"Cannot set the log level of root to debug {wrong}",
            ),
            ("1", [("kafka", SET, "INFO")], ErrorCode.INVALID_CONFIG, "Logger kafka does not exist!"),
            ("1", [("kafka", DELETE, None)], ErrorCode.INVALID_CONFIG, "Logger kafka does not exist!"),
            (
                "1",
                [("root", DELETE, None)],
                ErrorCode.INVALID_REQUEST,
                "Removing the log level of the root logger is not allowed",
            ),
            (
                "1",
                [("root", APPEND, "INFO")],
                ErrorCode.INVALID_REQUEST,
                "APPEND operation is not allowed for the BROKER_LOGGER resource",
            ),
            ("2", [], ErrorCode.INVALID_REQUEST, "Unexpected node id. Expected 1, but received 2"),
            ("", [], ErrorCode.INVALID_REQUEST, "Node id must be an integer, but it is: "),
        ):
            assert self.alter(LOGGER, name, *changes) == (code, says)
        assert self.replace(LOGGER, "1", root="WARN") == (ErrorCode.INVALID_REQUEST, "Unknown resource type 8")
        assert self.levels.level == "info"

    def test_an_embedded_gateway_has_no_level(self) -> None:
        """
        The log belongs to the embedding program.
        """
        self.serving = Serving()
        code, told = self.alter(LOGGER, "1", ("root", SET, "WARN"))
        assert code == ErrorCode.INVALID_REQUEST
        assert "part of another program" in str(told)
