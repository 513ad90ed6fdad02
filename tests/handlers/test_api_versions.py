"""
ApiVersions, the first request of a client.
"""

from dataclasses import replace

import pytest
from twisted.trial.unittest import SynchronousTestCase

from kgateway.cluster.view import ClusterView
from kgateway.handlers.api_versions import api_versions
from kgateway.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kgateway.wire.errors import ErrorCode, KafkaError
from tests.serving import Serving

PRODUCE = {0: (range(3, 14), "Produce")}
CONSUMER_GROUPS = {68: (range(2), "ConsumerGroupHeartbeat")}
TRANSACTIONS = {26: (range(6), "EndTxn")}
REQUEST = ApiVersionsRequest(client_software_name="apache-kafka-java", client_software_version="4.3.1")


class ApiVersionsTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.serving = Serving()

    def ask(self, version: int, request: ApiVersionsRequest = REQUEST) -> ApiVersionsResponse:
        response: ApiVersionsResponse = self.successResultOf(self.serving.ask(api_versions, request, version))
        return response

    def supported(self, version: int) -> list[tuple[str, int, int]]:
        return [(f.name, f.min_version, f.max_version) for f in self.ask(version).supported_features]

    def see(self, features: dict[str, int], epoch: int) -> None:
        view: ClusterView = replace(self.serving.broker.view(), features=features, epoch=epoch)
        self.patch(self.serving.broker, "view", lambda: view)

    def test_every_served_api_is_listed(self) -> None:
        """
        This holds in every version.
        """
        self.serving.parts.advertised = PRODUCE | TRANSACTIONS
        for version in api_versions.versions:
            response = self.ask(version)
            told = [(api.api_key, api.min_version, api.max_version) for api in response.api_keys]
            assert (response.error_code, told) == (ErrorCode.NONE, [(0, 3, 13), (26, 0, 5)]), version

    def test_features_need_their_api(self) -> None:
        """
        A feature is supported where the API that it stands for is served.
        """
        self.serving.parts.advertised = PRODUCE
        assert self.supported(4) == []
        self.serving.parts.advertised = PRODUCE | CONSUMER_GROUPS
        assert self.supported(4) == [("group.version", 0, 1)]
        self.serving.parts.advertised = PRODUCE | TRANSACTIONS
        assert self.supported(4) == [("transaction.version", 0, 2)]

    def test_features_from_zero_are_hidden_from_old_clients(self) -> None:
        """
        Clients before v4 cannot read a minimum of 0.
        """
        self.serving.parts.advertised = CONSUMER_GROUPS
        assert self.supported(3) == []

    def test_finalized_features(self) -> None:
        """
        They have their levels and the epoch of the view.
        """
        self.see({"transaction.version": 2, "group.version": 0}, epoch=7)
        self.serving.parts.advertised = CONSUMER_GROUPS | TRANSACTIONS
        response = self.ask(3)
        told = [(f.name, f.min_version_level, f.max_version_level) for f in response.finalized_features]
        assert (told, response.finalized_features_epoch) == ([("transaction.version", 2, 2)], 7)

    def test_undecided_features_have_their_highest_level(self) -> None:
        """
        The cluster may have agreed on others.
        """
        self.serving.parts.advertised = CONSUMER_GROUPS | {3: (range(14), "Metadata")}
        told = {f.name: f.max_version_level for f in self.ask(3).finalized_features}
        assert told == {"group.version": 1, "metadata.version": 30}
        assert self.supported(3) == [("metadata.version", 30, 30)]
        assert self.supported(4) == [("group.version", 0, 1), ("metadata.version", 30, 30)]

    def test_client_software_is_remembered(self) -> None:
        """
        Its connection has it from then on.
        """
        self.ask(3)
        session = self.serving.session
        assert (session.software, session.software_version) == ("apache-kafka-java", "4.3.1")

    def test_old_clients_name_no_software(self) -> None:
        """
        The field is missing before v3.
        """
        assert self.ask(2).error_code == ErrorCode.NONE
        assert self.serving.session.software == "unknown"

    def test_valid_software_names(self) -> None:
        """
        They have letters, digits, dots and dashes, and begin and end with one of the first two.
        """
        for name in ("a", "7", "a-b", "a.b", "A--9"):
            self.ask(3, ApiVersionsRequest(client_software_name=name, client_software_version=name))
            assert self.serving.session.software == name

    def test_invalid_software_names_are_refused(self) -> None:
        """
        Kafka refuses the same, and nothing is remembered.
        """
        for wrong in ("", "-a", "a-", ".", "a b", "a_b", "ä", "a\n"):
            for name, version in ((wrong, "1"), ("a", wrong)):
                request = ApiVersionsRequest(client_software_name=name, client_software_version=version)
                with pytest.raises(KafkaError) as caught:
                    self.ask(3, request)
                assert caught.value.code == ErrorCode.INVALID_REQUEST
                assert repr(wrong) in (caught.value.message or "")
        assert self.serving.session.software == "unknown"
