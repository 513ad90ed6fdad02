"""
ListConfigResources.
"""

from twisted.trial.unittest import SynchronousTestCase

from handlers.list_config_resources import list_config_resources
from kgateway.cluster.config_resource import ConfigKind, ConfigResource, group
from kgateway.cluster.view import NewTopic
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
        other = ConfigResource(ConfigKind.BROKER, "7")
        self.successResultOf(broker.change_config(other, lambda _: {"num.io.threads": "1"}))

    def ask(self, *kinds: int, version: int = 1) -> list[tuple[int, str]]:
        request = ListConfigResourcesRequest(resource_types=list(kinds))
        answer: ListConfigResourcesResponse
        answer = self.successResultOf(self.serving.ask(list_config_resources, request, version))
        assert (answer.throttle_time_ms, answer.error_code) == (0, 0)
        return [(found.resource_type, found.resource_name) for found in answer.config_resources]

    def test_versions(self) -> None:
        """
        The versions of Kafka 4.3 are served.
        """
        assert list_config_resources.versions == range(2)

    def test_kinds(self) -> None:
        """
        Topics and brokers are there in any case, groups where something is set for them; client metrics are not.
        """
        assert self.ask(TOPIC) == [(TOPIC, "orders")]
        assert self.ask(BROKER) == [(BROKER, "1")]
        assert self.ask(LOGGER) == [(LOGGER, "1")]
        assert self.ask(METRICS) == []
        assert self.ask(GROUP) == [(GROUP, "g")]

    def test_several(self) -> None:
        """
        Several kinds may be named, each comes once; none is all.
        """
        assert self.ask(TOPIC, GROUP, TOPIC) == [(GROUP, "g"), (TOPIC, "orders")]
        assert self.ask() == [(GROUP, "g"), (LOGGER, "1"), (BROKER, "1"), (TOPIC, "orders")]

    def test_client_metrics(self) -> None:
        """
        The first version knows client metrics alone.
        """
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

    def test_unknown_kinds(self) -> None:
        """
        A kind that there is not is refused, and so is all that was asked with it.
        """
        for kind in (0, 1, 3, 64):
            error = self.refusal(GROUP, kind)
            assert error.code is ErrorCode.UNSUPPORTED_VERSION
            assert str(kind) in str(error.message)

    def test_denied(self) -> None:
        """
        Who may not see the configs of the cluster is told no names.
        """
        authorizer = self.serving.parts.authorizer = Denying()
        for version in range(2):
            assert self.refusal(version=version).code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        assert {asked[:2] for asked in authorizer.asked} == {(Operation.DESCRIBE_CONFIGS, Resource.CLUSTER)}
