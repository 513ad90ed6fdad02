"""
The broker before a real cluster does what every broker does.
"""

from collections.abc import Callable
from uuid import uuid4

import pytest

from kgateway.broker.seaweed.addresses import master_addresses
from kgateway.broker.seaweed.dev_cluster import DevCluster
from kgateway.broker.seaweedmq.broker import SeaweedMQBroker
from kgateway.cluster.view import Topic
from kgateway.interfaces import IPartition
from tests.broker import behaviour
from tests.broker.administering import Administering
from tests.broker.altering import Altering
from tests.broker.behaviour import Behaviour, Make, World, result
from tests.broker.deletions import LettingGo
from tests.broker.seaweed.running import reactor, until, wait
from tests.broker.seaweedmq.starting import settled_to


@pytest.fixture
def make(cluster: DevCluster, monkeypatch: pytest.MonkeyPatch) -> Make:
    """
    Brokers with a namespace each.
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


class TestSeaweedMQ(Behaviour, LettingGo, Altering, Administering):
    """
    Behind it is a real cluster.
    """

    has_transactions = False

    def settle(self, partition: IPartition) -> None:
        """
        Files must have them, and it must be known what is in those.
        """
        until(lambda: settled_to(partition) == partition.log_end)

    def settle_sizes(self, world: World, topic: Topic) -> None:
        """
        It is files that count, as they were listed last.
        """
        self.settle(world.broker.partition(topic.id, 0))
        until(lambda: bool(result(world.broker.measure([(topic.id, 0)])).sizes[topic.id, 0]))
