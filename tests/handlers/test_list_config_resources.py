"""
ListConfigResources.
"""

from twisted.trial.unittest import SynchronousTestCase

from kgateway.cluster.config_resource import ConfigResource, ResourceType, group
from kgateway.cluster.view import NewTopic
from kgateway.handlers.list_config_resources import list_config_resources
from kgateway.messages.list_config_resources import ListConfigResourcesRequest, ListConfigResourcesResponse
from kgateway.security.permissions import Operation, Resource
from kgateway.wire.errors import ErrorCode, KafkaError
from tests.serving import Denying, Serving

TOPIC, BROKER, LOGGER, METRICS, GROUP = 2, 4, 8, 16, 32


class ListConfigResourcesTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.serving = Serving()
        broker = self.serving.broker
        self.successResultOf(broker.create_topic(NewTopic("orders", 1)))
        for group_id in ("g", "h"):
            self.successResultOf(
                broker.change_config(group(group_id), lambda _: {"consumer.session.timeout.ms": "50000"})
            )
        self.successResultOf(broker.change_config(group("h"), lambda _: {}))
        other = ConfigResource(ResourceType.BROKER, "7")
        self.successResultOf(broker.change_config(other, lambda _: {"num.io.threads": "1"}))

    def ask(self, *kinds: int, version: int = 1) -> list[tuple[int, str]]:
        request = ListConfigResourcesRequest(resource_types=list(kinds))
        answer: ListConfigResourcesResponse
        answer = self.successResultOf(self.serving.ask(list_config_resources, request, version))
        assert (answer.throttle_time_ms, answer.error_code) == (0, 0)
        return [(found.resource_type, found.resource_name) for found in answer.config_resources]

    def test_versions_of_kafka_4_3_are_served(self) -> None:
        assert list_config_resources.versions == range(2)

    def test_resources_are_listed(self) -> None:
        """
        Topics and brokers are always there, groups if something is set for them, and client metrics never.
        """
        assert self.ask(TOPIC) == [(TOPIC, "orders")]
        assert self.ask(BROKER) == [(BROKER, "1")]
        assert self.ask(LOGGER) == [(LOGGER, "1")]
        assert self.ask(METRICS) == []
        assert self.ask(GROUP) == [(GROUP, "g")]

    def test_several_types_may_be_named(self) -> None:
        """
        Each resource is listed once; no type means all.
        """
        assert self.ask(TOPIC, GROUP, TOPIC) == [(GROUP, "g"), (TOPIC, "orders")]
        assert self.ask() == [(GROUP, "g"), (LOGGER, "1"), (BROKER, "1"), (TOPIC, "orders")]

    def test_version_0_lists_client_metrics_only(self) -> None:
        assert self.ask(version=0) == []

    def refusal(self, *kinds: int, version: int = 1) -> KafkaError:
        request = ListConfigResourcesRequest(resource_types=list(kinds))
        try:
            answer = self.serving.ask(list_config_resources, request, version)
        except KafkaError as error:
            return error
        refused = self.failureResultOf(answer, KafkaError).value
        assert isinstance(refused, KafkaError)
        return refused

    def test_unknown_types_are_refused(self) -> None:
        """
        The whole request fails.
        """
        for kind in (0, 1, 3, 64):
            error = self.refusal(GROUP, kind)
            assert error.code is ErrorCode.UNSUPPORTED_VERSION
            assert str(kind) in str(error.message)

    def test_permission_on_the_cluster_is_needed(self) -> None:
        authorizer = self.serving.parts.authorizer = Denying()
        for version in range(2):
            assert self.refusal(version=version).code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        assert {asked[:2] for asked in authorizer.asked} == {(Operation.DESCRIBE_CONFIGS, Resource.CLUSTER)}
