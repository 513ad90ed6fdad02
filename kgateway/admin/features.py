"""
The features of a cluster, which Kafka's tools set by name and level: the levels that a gateway supports, and the
finalized ones.

A feature is there if the API that it stands for is served. Every feature is at its highest level from the start and
stays there: a level says what this gateway can do; it switches nothing on or off.
"""

from collections.abc import Mapping
from typing import NamedTuple

from kgateway.context import Context
from kgateway.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kgateway.messages.end_txn import EndTxnRequest
from kgateway.messages.metadata import MetadataRequest
from kgateway.wire.schema import Message


class Feature(NamedTuple):
    name: str
    lowest: int
    highest: int
    api: type[Message]


# 30 is the metadata.version of Kafka 4.3.
_FEATURES = (
    Feature("group.version", 0, 1, ConsumerGroupHeartbeatRequest),
    Feature("metadata.version", 30, 30, MetadataRequest),
    Feature("transaction.version", 0, 2, EndTxnRequest),
)


def supported(context: Context) -> dict[str, Feature]:
    return {feature.name: feature for feature in _FEATURES if feature.api.__spec__.key in context.served}


def finalized(context: Context) -> Mapping[str, int]:
    """
    The levels in force: those that the cluster has agreed on, else those of this gateway.
    """
    own = {name: feature.highest for name, feature in supported(context).items()}
    return {**own, **context.broker.view().features}
