"""
Gateways that start, one after the other or beside one another, before the same topics of a real cluster.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from kgateway.broker.seaweed.addresses import master_addresses
from kgateway.broker.seaweed.dev_cluster import DevCluster
from kgateway.broker.seaweedmq.broker import SeaweedMQBroker
from kgateway.broker.seaweedmq.partition import SeaweedMQPartition
from kgateway.interfaces import IPartition
from tests.broker.behaviour import START_MS, result
from tests.broker.seaweed.running import reactor

Start = Callable[[], SeaweedMQBroker]


def gateway(cluster: DevCluster, namespace: str) -> SeaweedMQBroker:
    """
    One that has not begun.
    """
    masters = master_addresses(",".join(cluster.masters))
    return SeaweedMQBroker(
        masters, node_id=1, now_ms=lambda: START_MS, reactor=reactor, namespace=namespace, recent_bytes=1 << 20
    )


def settled_to(partition: IPartition) -> int:
    """
    Before which it is known of all records of a partition what is in files.
    """
    assert isinstance(partition, SeaweedMQPartition)
    assert partition._ledger
    return partition._ledger.ledger.end


@contextmanager
def running(start: Start) -> Iterator[SeaweedMQBroker]:
    """
    One from its start to its stop.
    """
    broker = start()
    result(broker.start())
    try:
        yield broker
    finally:
        result(broker.stop())
