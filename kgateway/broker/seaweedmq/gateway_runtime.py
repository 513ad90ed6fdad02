"""
What the parts of a gateway share: its identity, with clocks and settings, and the cluster as its broker shows it.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from kgateway.broker.base import STATE_PARTITIONS, TopicDefaults
from kgateway.broker.partition.retention import CHECK_MS
from kgateway.broker.partition.spool import Spool
from kgateway.broker.seaweed.chain.chain import Chain
from kgateway.broker.seaweed.cluster import SeaweedCluster
from kgateway.broker.seaweed.filer.filer import Filer
from kgateway.broker.seaweedmq.layout.topic_paths import namespace_folder
from kgateway.cluster.config_resource import AllOverrides, Change
from kgateway.cluster.view import ClusterView, NewTopic, PartitionState, Topic
from kgateway.wire.uuids import Uuid

LEDGER_INTERVAL_MS = 10_000


class GatewayRuntime(NamedTuple):
    seaweed: SeaweedCluster
    namespace: str
    client: str  # its name in locks, feeds and streams
    now_ms: Callable[[], int]
    reactor: Any
    producer_expiry_ms: int
    topic_defaults: Mapping[str, str]
    spool: Spool  # of recent batches
    offsets_partitions: int = STATE_PARTITIONS  # of `__consumer_offsets`, when it is made
    retention_check_ms: int = CHECK_MS
    ledger_interval_ms: int = LEDGER_INTERVAL_MS

    @property
    def folder(self) -> str:
        """
        The folder of what belongs to no topic.
        """
        return f"{namespace_folder(self.namespace)}/.meta/kgateway"

    def shared_chain(self, filer: Filer, name: str) -> Chain:
        """
        A chain to which every gateway of this namespace may append.
        """
        return Chain(filer, f"{self.folder}/{name}", self.seaweed.retries, shared=True)


class ShownCluster(NamedTuple):
    """
    The cluster as the broker shows it to clients, and the rules of all brokers for changing it.
    """

    view: Callable[[], ClusterView]
    show: Callable[[ClusterView], None]
    show_topic: Callable[[Topic], Topic]
    show_overrides: Callable[[AllOverrides], None]
    check: Callable[[NewTopic], None]
    new_topic: Callable[[NewTopic, int], Topic]
    grown: Callable[[Topic, int, int], Topic]
    configured: Callable[[str, Change], Topic]
    topic: Callable[[Uuid], Topic]
    led: Callable[[int, int], tuple[PartitionState, ...]]
    defaults: TopicDefaults
