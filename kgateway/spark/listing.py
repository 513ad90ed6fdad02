"""
Where logs begin and end, and what in them is of which time, as their leaders tell.
"""

from collections.abc import Collection, Iterable

from kgateway.client.cluster import Cluster, Node, refuse
from kgateway.client.offsets import EARLIEST, LATEST, Extent, Found, Partition, by_leader, by_topic
from kgateway.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from kgateway.spark.leaders import Leaders
from kgateway.spark.patience import PatientCluster, Servers

_CONSUMER = -1  # in place of a replica's id
_NONE = -1


class Listing:
    """
    Asks the leaders of partitions.
    """

    def __init__(self, asking: PatientCluster, leaders: Leaders) -> None:
        self._asking = asking
        self._leaders = leaders

    def extents(self, wanted: Collection[Partition]) -> dict[Partition, Extent]:
        """
        What each log has that may be read.
        """
        starts, ends = self.found(wanted, EARLIEST), self.found(wanted, LATEST)
        return {one: Extent(starts[one].offset or 0, ends[one].offset or 0) for one in starts.keys() & ends.keys()}

    def found(self, wanted: Collection[Partition], timestamp_ms: int) -> dict[Partition, Found]:
        """
        In each log the first record of that time or later, or one of its ends.
        """
        if not wanted:
            return {}

        def attempt(cluster: Cluster) -> dict[Partition, Found]:
            leaders = self._leaders.of(cluster, wanted)
            found = dict[Partition, Found]()
            for node, led in by_leader({one: leaders[one].node for one in wanted}).items():
                found |= _found_at(cluster, node, led, timestamp_ms, self._asking.servers)
            return found

        return self._asking.settled(attempt, f"the offsets of {', '.join(sorted({one.topic for one in wanted}))}")


def _found_at(
    cluster: Cluster, node: Node, wanted: Iterable[Partition], timestamp_ms: int, servers: Servers
) -> dict[Partition, Found]:
    kind = ListOffsetsRequest.Topic
    asked = [
        kind(name=name, partitions=[kind.Partition(partition_index=one.index, timestamp=timestamp_ms) for one in group])
        for name, group in by_topic(wanted).items()
    ]
    request = ListOffsetsRequest(
        replica_id=_CONSUMER,
        isolation_level=int(servers.committed_only),
        topics=asked,
        timeout_ms=int(servers.answer_s * 1_000),
    )
    answer = cluster.connection(node).ask(request, ListOffsetsResponse)
    found = {}
    for topic in answer.topics:
        for told in topic.partitions:
            refuse(told.error_code)
            offset = None if told.offset == _NONE else told.offset
            found[Partition(topic.name, told.partition_index)] = Found(offset, told.timestamp)
    return found
