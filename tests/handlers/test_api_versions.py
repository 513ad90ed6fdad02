"""
What a client learns first.
"""

from dataclasses import replace

import pytest
from twisted.trial.unittest import SynchronousTestCase

from handlers.api_versions import api_versions
from kgateway.cluster.view import ClusterView
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

    def test_ranges(self) -> None:
        """
        In every version the client is told the versions of each API that is served.
        """
        self.serving.parts.advertised = PRODUCE | TRANSACTIONS
        for version in api_versions.versions:
            response = self.ask(version)
            told = [(api.api_key, api.min_version, api.max_version) for api in response.api_keys]
            assert (response.error_code, told) == (ErrorCode.NONE, [(0, 3, 13), (26, 0, 5)]), version

    def test_features_of_served_apis(self) -> None:
        """
        A feature is supported where the API that it stands for is served.
        """
        self.serving.parts.advertised = PRODUCE
        assert self.supported(4) == []
        self.serving.parts.advertised = PRODUCE | CONSUMER_GROUPS
        assert self.supported(4) == [("group.version", 0, 1)]
        self.serving.parts.advertised = PRODUCE | TRANSACTIONS
        assert self.supported(4) == [("transaction.version", 0, 2)]

    def test_features_from_zero(self) -> None:
        """
        Clients before v4, which cannot read a minimum of 0, are not told of features that have it.
        """
        self.serving.parts.advertised = CONSUMER_GROUPS
        assert self.supported(3) == []

    def test_finalized_features(self) -> None:
        """
        The features that are on in the cluster are told with their levels and the epoch of the view.
        """
        self.see({"transaction.version": 2, "group.version": 0}, epoch=7)
        self.serving.parts.advertised = CONSUMER_GROUPS | TRANSACTIONS
        response = self.ask(3)
        told = [(f.name, f.min_version_level, f.max_version_level) for f in response.finalized_features]
        assert (told, response.finalized_features_epoch) == ([("transaction.version", 2, 2)], 7)

    def test_features_that_nobody_has_decided(self) -> None:
        """
        Features are on, at their highest levels, unless the cluster has agreed on others.
        """
        self.serving.parts.advertised = CONSUMER_GROUPS | {3: (range(14), "Metadata")}
        told = {f.name: f.max_version_level for f in self.ask(3).finalized_features}
        assert told == {"group.version": 1, "metadata.version": 30}
        assert self.supported(3) == [("metadata.version", 30, 30)]
        assert self.supported(4) == [("group.version", 0, 1), ("metadata.version", 30, 30)]

    def test_software_is_remembered(self) -> None:
        """
        What the client says it is belongs to its connection from then on.
        """
        self.ask(3)
        session = self.serving.session
        assert (session.software, session.software_version) == ("apache-kafka-java", "4.3.1")

    def test_no_software(self) -> None:
        """
        A client from before v3 does not say what it is, and that is in order.
        """
        assert self.ask(2).error_code == ErrorCode.NONE
        assert self.serving.session.software == "unknown"

    def test_spellings_of_software(self) -> None:
        """
        Names and versions of software may have letters, digits, dots and dashes, but begin and end with the first two.
        """
        for name in ("a", "7", "a-b", "a.b", "A--9"):
            self.ask(3, ApiVersionsRequest(client_software_name=name, client_software_version=name))
            assert self.serving.session.software == name

    def test_misspelled_software(self) -> None:
        """
        A client whose software has a name or version that Kafka would not take is refused, and nothing is remembered.
        """
        for wrong in ("", "-a", "a-", ".", "a b", "a_b", "ä", "a\n"):
            for name, version in ((wrong, "1"), ("a", wrong)):
                request = ApiVersionsRequest(client_software_name=name, client_software_version=version)
                with pytest.raises(KafkaError) as caught:
                    self.ask(3, request)
                assert caught.value.code == ErrorCode.INVALID_REQUEST
                assert repr(wrong) in (caught.value.message or "")
        assert self.serving.session.software == "unknown"
