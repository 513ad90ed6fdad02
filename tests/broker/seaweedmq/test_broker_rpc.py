"""
The calls to brokers of SeaweedMQ, and how long they may take.
"""

from typing import Any, cast

import pytest
from twisted.internet.defer import Deferred, succeed
from twisted.internet.task import Clock

from kgateway.broker.seaweed.calls.retries import Retries
from kgateway.broker.seaweed.cluster import SeaweedCluster
from kgateway.broker.seaweed.grpc.call_headers import Method
from kgateway.broker.seaweed.protos.messaging_pb2 import BrokerPartitionAssignment
from kgateway.broker.seaweedmq.topics.broker_rpc import BrokerRpc
from tests.broker.behaviour import result


class Cluster:
    """
    A cluster with one broker, which answers at once, and records requests and their timeouts.
    """

    def __init__(self) -> None:
        self.retries = Retries(Clock())
        self.seconds: list[float] = []
        self.requests: list[Any] = []

    def brokers(self) -> Deferred[list[str]]:
        return succeed(["broker:17777"])

    def channel(self, _broker: str) -> "Cluster":
        return self

    def call(self, method: Method[Any, Any], request: Any, seconds: float) -> Deferred[Any]:
        self.seconds.append(seconds)
        self.requests.append(request)
        return succeed(method.response())


@pytest.mark.parametrize(("count", "seconds"), [(1, 10), (500, 30), (2520, 110)])
def test_more_partitions_may_take_longer_to_make(count: int, seconds: int) -> None:
    """
    Other calls have the timeout of one partition.
    """
    cluster = Cluster()
    rpc = BrokerRpc(cast(SeaweedCluster, cluster), "kafka")
    assert result(Deferred.fromCoroutine(rpc.configure("t", count, None))) == []
    assert result(Deferred.fromCoroutine(rpc.publishers("t"))) == []
    assert [int(each) for each in cluster.seconds] == [seconds, 10]


def test_messages_are_fetched_in_the_name_of_the_gateway() -> None:
    """
    Brokers write it into detailed logs.
    """
    cluster, assignment = Cluster(), BrokerPartitionAssignment(leader_broker="broker:17777")
    rpc = BrokerRpc(cast(SeaweedCluster, cluster), "kafka", "kgateway-7@gw1")
    result(Deferred.fromCoroutine(rpc.fetch("t", assignment, 0)))
    result(Deferred.fromCoroutine(rpc.fetch_from("t", assignment, 0)))
    names = [(request.consumer_group, request.consumer_id) for request in cluster.requests]
    assert names == [("kgateway", "kgateway-7@gw1")] * 2
