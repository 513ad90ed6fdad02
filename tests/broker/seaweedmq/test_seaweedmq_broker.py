"""
The broker in front of a real cluster does what every broker does.
"""

from collections.abc import Callable
from uuid import uuid4

import pytest

from kgateway.broker.seaweed.calls.addresses import master_addresses
from kgateway.broker.seaweed.dev.dev_cluster import DevCluster
from kgateway.broker.seaweedmq.broker import SeaweedMQBroker
from kgateway.cluster.view import Topic
from kgateway.interfaces import IPartition
from kgateway.topic_partition import PartitionId
from tests.broker import behaviour
from tests.broker.admin_behaviour import Administering
from tests.broker.behaviour import Behaviour, Make, World, result
from tests.broker.config_behaviour import Altering
from tests.broker.deletion_behaviour import SegmentDeletion
from tests.broker.seaweed.real_reactor import reactor, until, wait
from tests.broker.seaweedmq.gateways import ledger_end


@pytest.fixture
def make(cluster: DevCluster, monkeypatch: pytest.MonkeyPatch) -> Make:
    """
    A function that creates brokers with a namespace each.
    """
    monkeypatch.setattr(behaviour, "patience", wait)

    def made(now_ms: Callable[[], int], producer_expiry_ms: int) -> SeaweedMQBroker:
        return SeaweedMQBroker(
            master_addresses(",".join(cluster.masters)),
            node_id=1,
            now_ms=now_ms,
            reactor=reactor,
            namespace=f"test-{uuid4().hex}",
            producer_expiry_ms=producer_expiry_ms,
            recent_bytes=1 << 20,
        )

    made.configs = {"seaweedmq_format": "batch"}  # type: ignore[attr-defined]  # as `World` asks for it
    return made


class TestSeaweedMQ(Behaviour, SegmentDeletion, Altering, Administering):
    """
    The broker uses a real cluster.
    """

    has_transactions = False

    def settle(self, partition: IPartition) -> None:
        """
        Records must be in files, and in the ledger.
        """
        until(lambda: ledger_end(partition) == partition.log_end)

    def settle_sizes(self, world: World, topic: Topic) -> None:
        """
        Sizes are those of files, as they were listed last.
        """
        self.settle(world.broker.partition(topic.id, 0))
        until(lambda: bool(result(world.broker.measure([PartitionId(topic.id, 0)])).sizes[PartitionId(topic.id, 0)]))
