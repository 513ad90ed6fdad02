"""
Logs behind the servers of a cluster, by Kafka's protocol.
"""

from collections.abc import Collection, Iterable, Iterator
from functools import partial

from kgateway.client.offsets import Extent, Found, Partition
from kgateway.spark.fetching import Fetcher, ahead
from kgateway.spark.leaders import Leaders
from kgateway.spark.listing import Listing
from kgateway.spark.logs import Window
from kgateway.spark.patience import NO_TOPIC, PatientCluster, Servers
from kgateway.spark.ranges import OffsetRange


class ServerLogs:
    """
    The logs of a cluster.
    """

    def __init__(self, servers: Servers) -> None:
        self.leaders = Leaders()
        self._asking = PatientCluster(servers)
        self._listing = Listing(self._asking, self.leaders)

    def partitions(self, topics: Iterable[str] | None = None) -> dict[str, list[Partition]]:
        names = None if topics is None else list(topics)
        told = self._asking.settled(partial(self.leaders.told, topics=names), "the list of topics")
        return {
            topic.name or "": sorted(Partition(topic.name or "", one.partition_index) for one in topic.partitions)
            for topic in told.topics
            if topic.error_code not in NO_TOPIC and not (topics is None and topic.is_internal)
        }

    def extents(self, wanted: Collection[Partition]) -> dict[Partition, Extent]:
        return self._listing.extents(wanted)

    def at_time(self, wanted: Collection[Partition], timestamp_ms: int) -> dict[Partition, Found]:
        return self._listing.found(wanted, timestamp_ms)

    def windows(self, wanted: OffsetRange) -> Iterator[Window]:
        return ahead(Fetcher(self._asking, self.leaders, self._listing, wanted.partition), wanted)

    def __str__(self) -> str:
        return f"the cluster at {self._asking.servers}"

    def close(self) -> None:
        self._asking.close()
