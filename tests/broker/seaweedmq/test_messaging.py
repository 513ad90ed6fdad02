"""
What brokers of SeaweedMQ are asked, and how long that may take.
"""

from typing import Any, cast

import pytest
from twisted.internet.defer import Deferred, succeed
from twisted.internet.task import Clock

from kgateway.broker.seaweed.grpc.method import Method
from kgateway.broker.seaweed.retrying import Retrying
from kgateway.broker.seaweed.seaweed import Seaweed
from kgateway.broker.seaweedmq.messaging import Messaging
from tests.broker.behaviour import result


class Cluster:
    """
    One of a single broker, which answers at once, and notes how long it might have taken.
    """

    def __init__(self) -> None:
        self.retrying = Retrying(Clock())
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
    Other calls have what one has.
    """
    cluster = Cluster()
    messaging = Messaging(cast(Seaweed, cluster), "kafka")
    assert result(Deferred.fromCoroutine(messaging.configure("t", count, None))) == []
    assert result(Deferred.fromCoroutine(messaging.publishers("t"))) == []
    assert [int(each) for each in cluster.seconds] == [seconds, 10]
