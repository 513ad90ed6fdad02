"""
DescribeCluster.
"""

from twisted.trial.unittest import SynchronousTestCase

from kgateway.handlers.describe_cluster import describe_cluster
from kgateway.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from kgateway.messages.operations import UNKNOWN_OPERATIONS
from kgateway.security.permissions import Operation
from kgateway.wire.errors import ErrorCode
from tests.cluster.clusters import FAR, NEAR, OWN, refusal, serving_among
from tests.serving import Denying, Serving

VERSIONS = range(3)


class DescribeClusterTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.serving = Serving()

    def ask(self, version: int = 2, endpoint_type: int = 1, operations: bool = False) -> DescribeClusterResponse:
        request = DescribeClusterRequest(
            include_cluster_authorized_operations=operations,
            endpoint_type=endpoint_type,
            include_fenced_brokers=version >= 2,
        )
        response: DescribeClusterResponse
        response = self.successResultOf(self.serving.ask(describe_cluster, request, version))
        return response

    def test_versions_of_kafka_4_3_are_served(self) -> None:
        assert describe_cluster.versions == VERSIONS

    def test_reachable_brokers_are_listed(self) -> None:
        """
        They have their racks, and none of them is fenced.
        """
        self.serving, _ = serving_among(NEAR, FAR)
        for version in VERSIONS:
            brokers = self.ask(version).brokers
            told = [(broker.broker_id, broker.host, broker.port, broker.rack) for broker in brokers]
            near = (NEAR.id, "two.example", 9092, "rack-b")
            assert [(OWN, "127.0.0.1", 9092, None), near] == told, version
            assert [broker.is_fenced for broker in brokers] == [False, False], version

    def test_cluster_id_and_controller_are_returned(self) -> None:
        for version in VERSIONS:
            response = self.ask(version)
            known = (0, self.serving.broker.view().cluster_id, OWN, 1)
            told = (response.error_code, response.cluster_id, response.controller_id, response.endpoint_type)
            assert known == told, version

    def test_an_unreachable_controller_is_not_named(self) -> None:
        """
        It is not among the listed brokers.
        """
        self.serving, broker = serving_among(FAR)
        broker.controller_id = FAR.id
        assert self.ask().controller_id == -1

    def test_other_endpoint_types_are_refused(self) -> None:
        """
        A gateway is a broker: a request for controllers is misaddressed, and other types are invalid.
        """
        for endpoint_type, code in (
            (2, ErrorCode.MISMATCHED_ENDPOINT_TYPE),
            (0, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE),
            (3, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE),
        ):
            for version in VERSIONS[1:]:
                error = refusal(self.ask, version, endpoint_type)
                assert code == error.code, version

    def test_operations_are_listed_on_request(self) -> None:
        """
        There are none if the client may not describe the cluster.
        """
        assert self.ask().cluster_authorized_operations == UNKNOWN_OPERATIONS
        self.serving = Serving(Denying(lambda operation, *_: operation is Operation.ALTER))
        bits = sum(1 << bit for bit in (5, 8, 9, 10, 11, 12))
        for version in VERSIONS:
            assert bits == self.ask(version, operations=True).cluster_authorized_operations, version
        self.serving = Serving(Denying(lambda operation, *_: operation is Operation.DESCRIBE))
        assert self.ask(operations=True).cluster_authorized_operations == 0
