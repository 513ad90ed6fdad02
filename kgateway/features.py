"""
The features of a cluster, which Kafka's tools call by name and level: which levels a gateway could have, and which it
has.

A feature is there where the API that it stands for is served. All are at their highest level from the start, and stay
there: a level is what this gateway can do, and not a switch.
"""

from collections.abc import Mapping
from typing import NamedTuple

from kgateway.context import Context
from kgateway.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kgateway.messages.end_txn import EndTxnRequest
from kgateway.messages.metadata import MetadataRequest
from kgateway.wire.schema import Message


class Feature(NamedTuple):
    """
    A feature, and which levels of it there are.
    """

    name: str
    lowest: int
    highest: int
    api: type[Message]


# Kafka 4.3 calls the level of what its brokers answer, beside the features that are told one by one, 30.
_FEATURES = (
    Feature("group.version", 0, 1, ConsumerGroupHeartbeatRequest),
    Feature("metadata.version", 30, 30, MetadataRequest),
    Feature("transaction.version", 0, 2, EndTxnRequest),
)


def supported(context: Context) -> dict[str, Feature]:
    """
    By name, those that this gateway has.
    """
    return {feature.name: feature for feature in _FEATURES if feature.api.__spec__.key in context.served}


def finalized(context: Context) -> Mapping[str, int]:
    """
    The levels that hold in the cluster: those it has agreed upon, or what this gateway has where it has agreed on none.
    """
    own = {name: feature.highest for name, feature in supported(context).items()}
    return {**own, **context.broker.view().features}
