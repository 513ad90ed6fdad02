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
from kgateway.broker.seaweedmq.topics.broker_rpc import BrokerRpc
from tests.broker.behaviour import result


class Cluster:
    """
    A cluster with one broker, which answers at once, and records the timeouts of calls.
    """

    def __init__(self) -> None:
        self.retries = Retries(Clock())
        self.seconds: list[float] = []

    def brokers(self) -> Deferred[list[str]]:
        return succeed(["broker:17777"])

    def channel(self, _broker: str) -> "Cluster":
        return self

    def call(self, method: Method[Any, Any], _request: Any, seconds: float) -> Deferred[Any]:
        self.seconds.append(seconds)
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
