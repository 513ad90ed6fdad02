"""
A cluster of two scripted servers.
"""

from collections.abc import Iterator

import pytest

from kgateway.client.cluster import Cluster
from kgateway.messages.find_coordinator import FindCoordinatorResponse
from kgateway.messages.metadata import MetadataResponse
from tests.client.scripted import Pair, scripted

OFFERED = {
    "Metadata": (0, 13),
    "FindCoordinator": (0, 6),
    "ListGroups": (0, 5),
    "DescribeGroups": (0, 6),
    "ConsumerGroupDescribe": (0, 1),
    "ListOffsets": (1, 10),
    "OffsetFetch": (1, 10),
    "OffsetCommit": (2, 10),
}


@pytest.fixture
def pair() -> Iterator[Pair]:
    """
    Two servers: the second one coordinates all groups; topic `orders` has a partition on each.
    """
    with scripted(**OFFERED) as first, scripted(**OFFERED) as second:
        servers = [first, second]
        brokers = [
            MetadataResponse.Broker(node_id=node_id, host=server.address.host, port=server.address.port)
            for node_id, server in enumerate(servers)
        ]
        partitions = [
            MetadataResponse.Topic.Partition(
                error_code=0, partition_index=node_id, leader_id=node_id, replica_nodes=[], isr_nodes=[]
            )
            for node_id in (1, 0)
        ]
        topic = MetadataResponse.Topic(error_code=0, name="orders", partitions=partitions)
        first.will(MetadataResponse(brokers=brokers, topics=[topic]))
        found = FindCoordinatorResponse.Coordinator(
            key="", node_id=1, host=second.address.host, port=second.address.port, error_code=0, error_message=None
        )
        first.will(FindCoordinatorResponse(coordinators=[found]))
        with Cluster([first.address], 5.0) as cluster:
            yield Pair(first, second, cluster)
