"""
Gateways that start, one after the other or beside one another, in front of the same topics of a real cluster.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from kgateway.broker.seaweed.calls.addresses import master_addresses
from kgateway.broker.seaweed.dev.dev_cluster import DevCluster
from kgateway.broker.seaweedmq.broker import SeaweedMQBroker
from kgateway.broker.seaweedmq.leader.leader import Leader
from kgateway.broker.seaweedmq.leadership.lease import LeaderLease
from kgateway.broker.seaweedmq.partitions.partition import SeaweedMQPartition
from kgateway.broker.state_log import StateLog
from kgateway.interfaces import IPartition
from kgateway.security.permissions import Resource
from tests.broker.behaviour import START_MS, result
from tests.broker.seaweed.real_reactor import reactor

Start = Callable[[], SeaweedMQBroker]


def gateway(cluster: DevCluster, namespace: str) -> SeaweedMQBroker:
    """
    A gateway that has not started.
    """
    masters = master_addresses(",".join(cluster.masters))
    return SeaweedMQBroker(
        masters, node_id=1, now_ms=lambda: START_MS, reactor=reactor, namespace=namespace, recent_bytes=1 << 20
    )


def ledger_end(partition: IPartition) -> int:
    """
    The offset before which the ledger of a partition has all records.
    """
    assert isinstance(partition, SeaweedMQPartition)
    return partition._ledger.ledger.end


def leader(broker: SeaweedMQBroker) -> Leader:
    """
    The role of a gateway that leads.
    """
    role = broker._election.role
    assert isinstance(role, Leader)
    return role


def lease(broker: SeaweedMQBroker) -> LeaderLease:
    found = broker._election._lease
    assert found
    return found


def group_log(broker: SeaweedMQBroker, group_id: str = "g") -> StateLog:
    """
    The log of the coordinator of a group, which this gateway has.
    """
    log = broker.coordinator(Resource.GROUP, group_id)
    assert isinstance(log, StateLog)
    return log


@contextmanager
def running(start: Start) -> Iterator[SeaweedMQBroker]:
    """
    A gateway, from its start to its stop.
    """
    broker = start()
    result(broker.start())
    try:
        yield broker
    finally:
        result(broker.stop())
