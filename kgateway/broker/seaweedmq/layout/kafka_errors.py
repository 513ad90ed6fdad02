"""
Errors of the cluster, as Kafka's clients get them.
"""

from collections.abc import Awaitable
from typing import TypeVar

from kgateway.broker.seaweed.calls.retries import FilerRefused, is_passing
from kgateway.broker.seaweed.chain.appender import ChainLost
from kgateway.broker.seaweed.chain.chain_folder import ChainDamaged
from kgateway.broker.seaweed.grpc.status import RpcError
from kgateway.wire.errors import ErrorCode, KafkaError, Malformed

T = TypeVar("T")

CLUSTER_ERRORS = (RpcError, FilerRefused, ChainLost, ChainDamaged, Malformed)
NOT_LEADER = KafkaError(
    ErrorCode.NOT_LEADER_OR_FOLLOWER, "this gateway does not lead the topics of this cluster, or not yet"
)
NOT_CONTROLLER = KafkaError(ErrorCode.NOT_CONTROLLER, "this gateway may not change the topics, or not yet")


async def with_kafka_errors(done: Awaitable[T]) -> T:
    """
    The outcome; raises a KafkaError if it fails for a reason of the cluster.
    """
    try:
        return await done
    except CLUSTER_ERRORS as error:
        raise kafka_error(error) from error


def kafka_error(error: Exception) -> KafkaError:
    """
    The KafkaError for an error of gRPC, the filer, or a file.
    """
    if is_passing(error):
        return KafkaError(ErrorCode.REQUEST_TIMED_OUT, f"the SeaweedFS cluster does not respond: {error}")
    return KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"the SeaweedFS cluster: {error}")
