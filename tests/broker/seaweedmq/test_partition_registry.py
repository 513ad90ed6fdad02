"""
What is logged of partitions that could not be opened.
"""

from types import SimpleNamespace
from typing import Any, cast

import pytest
from twisted.logger import LogLevel, capturedLogs

from kgateway.broker.seaweed.grpc.status import RpcError, Status
from kgateway.broker.seaweedmq.partitions.registry import ClusterPartitionRegistry, Partition
from kgateway.cluster.view import Topic
from kgateway.wire.errors import ErrorCode, KafkaError

_TOPIC = cast(Topic, SimpleNamespace(id=17, name="orders"))


@pytest.mark.parametrize(
    ("error", "level"),
    [
        (RpcError(Status.UNAVAILABLE, "it is out"), LogLevel.warn),
        (KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "another may lead by now"), LogLevel.warn),
        (RpcError(Status.INTERNAL, "it is broken"), LogLevel.critical),
        (KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "it is broken"), LogLevel.critical),
        (ZeroDivisionError("it is broken"), LogLevel.critical),
    ],
)
def test_only_errors_that_do_not_pass_need_a_report(error: Exception, level: Any) -> None:
    """
    A gateway may lack its lock for a moment, or the cluster may not respond. Clients get the reason either way.
    """

    async def failing(topic: Topic, index: int) -> Partition:
        raise error

    registry = ClusterPartitionRegistry(failing)
    with capturedLogs() as logged, pytest.raises(KafkaError) as raised:
        registry.partition(_TOPIC, 3)
    assert raised.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert str(error).rpartition(": ")[2] in str(raised.value)
    assert [event["log_level"] for event in logged] == [level]
