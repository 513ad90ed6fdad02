"""
Start and end offsets of logs, and offsets by timestamp (ListOffsets).
"""

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from kgateway.client.cluster import Cluster, Node, by_node, by_topic, leaders_of, leaders_of_all, refuse
from kgateway.client.connection import Unanswered
from kgateway.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from kgateway.topic_partition import TopicPartition

LATEST, EARLIEST = -1, -2  # in place of a timestamp
_NONE = -1
_CONSUMER = -1  # in place of a replica's id
_PATIENCE_MS = 30_000


class OffsetAndTimestamp(NamedTuple):
    """
    An offset of a log. The timestamp is None for an end of the log; both are None if no record is so late.
    """

    offset: int | None
    timestamp_ms: int | None


class Extent(NamedTuple):
    """
    The first offset of a log, and the offset after its last record.
    """

    start: int
    end: int


Offsets = dict[TopicPartition, OffsetAndTimestamp]


def offsets_at(
    cluster: Cluster,
    wanted: Collection[TopicPartition],
    timestamp_ms: int,
    *,
    must_exist: bool = False,
    committed_only: bool = False,
) -> Offsets:
    """
    In each log the first record with this timestamp or a later one, or an end of the log. Partitions that do not exist
    are left out, unless they `must_exist`. With `committed_only` a log ends at its last stable offset.
    """
    if not wanted:
        return {}  # to old servers no topics would mean all
    if must_exist:
        leaders = leaders_of_all(cluster, wanted)
    else:
        leaders = leaders_of(cluster, {partition.topic for partition in wanted})
    nodes = {one: leaders[one].node for one in {*wanted} & leaders.keys()}
    found: Offsets = {}
    for node, partitions in by_node(nodes).items():
        for one, (code, at) in _answers(cluster, node, partitions, timestamp_ms, committed_only).items():
            refuse(code)
            found[one] = at
    return found


def known_offsets(cluster: Cluster, nodes: Mapping[TopicPartition, Node], timestamp_ms: int) -> Offsets:
    """
    Like `offsets_at`, without the partitions whose leader does not answer or refuses.
    """
    found: Offsets = {}
    for node, partitions in by_node(nodes).items():
        try:
            answers = _answers(cluster, node, partitions, timestamp_ms)
        except Unanswered:
            continue
        found |= {one: at for one, (code, at) in answers.items() if not code}
    return found


def extents(cluster: Cluster, wanted: Collection[TopicPartition]) -> dict[TopicPartition, Extent]:
    """
    The extent of each log. Partitions that do not exist are left out.
    """
    return extents_between(offsets_at(cluster, wanted, EARLIEST), offsets_at(cluster, wanted, LATEST))


def extents_between(starts: Offsets, ends: Offsets) -> dict[TopicPartition, Extent]:
    return {one: Extent(starts[one].offset or 0, ends[one].offset or 0) for one in starts.keys() & ends.keys()}


def _answers(
    cluster: Cluster, node: Node, partitions: Iterable[TopicPartition], timestamp_ms: int, committed_only: bool = False
) -> dict[TopicPartition, tuple[int, OffsetAndTimestamp]]:
    kind = ListOffsetsRequest.Topic
    asked = [
        kind(name=name, partitions=[kind.Partition(partition_index=one.index, timestamp=timestamp_ms) for one in group])
        for name, group in by_topic(partitions).items()
    ]
    request = ListOffsetsRequest(
        replica_id=_CONSUMER, isolation_level=int(committed_only), topics=asked, timeout_ms=_PATIENCE_MS
    )
    answer = cluster.connection(node).ask(request, ListOffsetsResponse)
    return {
        TopicPartition(topic.name, one.partition_index): (
            one.error_code,
            OffsetAndTimestamp(_known(one.offset), _known(one.timestamp)),
        )
        for topic in answer.topics
        for one in topic.partitions
    }


def _known(number: int) -> int | None:
    return None if number == _NONE else number
