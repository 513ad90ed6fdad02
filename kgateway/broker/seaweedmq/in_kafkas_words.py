"""
What a cluster refuses, or does not answer, as Kafka's clients are told.
"""

from collections.abc import Awaitable
from typing import TypeVar

from kgateway.broker.seaweed.chain_appending import ChainLost
from kgateway.broker.seaweed.chain_object import ChainDamaged
from kgateway.broker.seaweed.grpc.status import RpcError
from kgateway.broker.seaweed.refused import FilerRefused
from kgateway.broker.seaweed.retrying import is_passing
from kgateway.wire.errors import ErrorCode, KafkaError
from kgateway.wire.malformed import Malformed

T = TypeVar("T")

CLUSTERS_ERRORS = (RpcError, FilerRefused, ChainLost, ChainDamaged, Malformed)


async def in_kafkas_words(done: Awaitable[T]) -> T:
    """
    The outcome; a KafkaError where it fails for a reason of the cluster.
    """
    try:
        return await done
    except CLUSTERS_ERRORS as error:
        raise kafkas(error) from error


def kafkas(error: Exception) -> KafkaError:
    """
    The error that clients are told.
    """
    if is_passing(error):
        return KafkaError(ErrorCode.REQUEST_TIMED_OUT, f"the SeaweedFS cluster does not answer: {error}")
    return KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"the SeaweedFS cluster: {error}")
