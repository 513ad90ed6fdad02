"""
Clusters of several gateways, as one of them sees them.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

import pytest
from twisted.logger import ILogObserver, LogEvent, globalLogPublisher
from twisted.trial.unittest import SynchronousTestCase

from kgateway.broker.memory import MemoryBroker
from kgateway.cluster.view import Address, ClusterView, Node, PartitionState
from kgateway.wire.errors import KafkaError
from tests.serving import START_MS, Serving

OWN = 1
NEAR = Node(2, "rack-b", {"plaintext": Address("two.example", 9092)})
FAR = Node(3, None, {"internal": Address("three.example", 9092)})  # an address for another listener than plaintext
GONE = 9


class Among(MemoryBroker):
    """
    The broker in memory, beside other nodes that lead the topics that a test gives them.
    """

    def __init__(self, *others: Node) -> None:
        super().__init__(node_id=OWN, now_ms=lambda: START_MS)
        self.others = others
        self.owners: dict[str, tuple[int, ...]] = {}  # topic -> replicas, the first of which leads
        self.controller_id = OWN

    def view(self) -> ClusterView:
        view = super().view()
        for name, replicas in self.owners.items():
            topic = view.topics[name]
            moved = PartitionState(replicas[0], 7, replicas, replicas)
            view = view.with_topic(replace(topic, partitions=(moved,) * len(topic.partitions)))
        return replace(view, nodes=(*view.nodes, *self.others), controller_id=self.controller_id)


def serving_among(*others: Node, **settings: Any) -> tuple[Serving, Among]:
    """
    A gateway to ask, and its broker.
    """
    serving = Serving(**settings)
    broker = serving.parts.broker = Among(*others)
    return serving, broker


def refusal(act: Callable[..., object], *arguments: object) -> KafkaError:
    """
    The error with which the call is refused.
    """
    with pytest.raises(KafkaError) as caught:
        act(*arguments)
    return caught.value


def hear_log(test: SynchronousTestCase) -> list[LogEvent]:
    """
    The log from now on, until the test ends.
    """
    events: list[LogEvent] = []
    hear = cast(ILogObserver, events.append)
    globalLogPublisher.addObserver(hear)
    test.addCleanup(globalLogPublisher.removeObserver, hear)
    return events
