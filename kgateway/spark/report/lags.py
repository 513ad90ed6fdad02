"""
How far groups are behind.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import partial

from kgateway.client.cluster import Cluster
from kgateway.client.groups import listed
from kgateway.client.offsets import Extent, Partition, committed
from kgateway.spark.report.facts import Lag

_CONSUMERS = {"consumer", ""}  # only they have committed offsets; nobody has said what the last one is


def lags(cluster: Cluster, extents: Mapping[Partition, Extent]) -> dict[str, list[Lag]]:
    """
    Of each topic, the groups that have committed something of it.
    """
    found: dict[str, list[Lag]] = defaultdict(list)
    for group in cluster.settled(partial(listed, cluster)):
        if group.protocol_type not in _CONSUMERS:
            continue
        offsets = cluster.settled(partial(committed, cluster, group.group_id))
        for topic in {one.topic for one in offsets}:
            behind = _behind({one: at.offset for one, at in offsets.items() if one.topic == topic}, extents)
            if any(lag is not None for lag in behind.values()):
                found[topic].append(Lag(group.group_id, group.state or "-", behind))
    return found


def _behind(offsets: Mapping[Partition, int], extents: Mapping[Partition, Extent]) -> dict[int, int | None]:
    topics = {one.topic for one in offsets}
    wanted: Iterable[Partition] = sorted(one for one in extents if one.topic in topics)
    return {one.index: max(extents[one].end - offsets[one], 0) if one in offsets else None for one in wanted}
