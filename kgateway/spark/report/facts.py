"""
The statistics of a topic, and the lag of groups.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from kgateway.client.cluster import Cluster
from kgateway.client.group_offsets import committed_offsets
from kgateway.client.groups import list_groups
from kgateway.client.offsets import Extent
from kgateway.topic_partition import TopicPartition

_CONSUMERS = {"consumer", ""}  # only they commit offsets; "" is a group whose type nobody has said


@dataclass(frozen=True, slots=True, order=True)
class Slot:
    """
    Records of a period; `bytes` are those of keys and values, before compression.
    """

    start_ms: int
    records: int
    bytes: int


@dataclass(frozen=True, slots=True, order=True)
class Bin:
    """
    The number of values that are at most this large, and larger than half of it.
    """

    up_to: int
    records: int


@dataclass(frozen=True, slots=True, order=True)
class Part:
    """
    A partition: its offsets, and the records and bytes at them.
    """

    index: int
    start: int
    end: int
    records: int
    bytes: int


@dataclass(frozen=True, slots=True, order=True)
class Frequent:
    key: bytes
    records: int


@dataclass(frozen=True, slots=True)
class Times:
    """
    When records came, in slots of one width. Records are `outside` whose timestamps are far from all others.
    """

    first_ms: int
    last_ms: int
    slot_ms: int
    slots: Sequence[Slot]
    outside: int
    of_server: int  # records with the time at which the server appended them; the others have the producer's


@dataclass(frozen=True, slots=True)
class Sizes:
    bins: Sequence[Bin]
    largest: int
    nulls: int

    def share_up_to(self, share: float) -> int:
        """
        A size that this share of the values does not exceed.
        """
        wanted = share * sum(size_bin.records for size_bin in self.bins)
        counted = 0
        for one in self.bins:
            counted += one.records
            if counted >= wanted:
                return min(one.up_to, self.largest)
        return self.largest


@dataclass(frozen=True, slots=True)
class Keys:
    distinct: int
    without: int
    most: Sequence[Frequent]


@dataclass(frozen=True, slots=True)
class Lag:
    """
    A group's lag in each partition; None if it has committed nothing.
    """

    group_id: str
    state: str
    parts: Mapping[int, int | None]

    @property
    def total(self) -> int:
        return sum(lag or 0 for lag in self.parts.values())


@dataclass(frozen=True, slots=True, order=True)
class Delay:
    """
    The append delay of records in a period: the median and the 99th percentile.
    """

    start_ms: int
    median_ms: int
    late_ms: int


@dataclass(frozen=True, slots=True)
class Latency:
    """
    The append delay of records, if it is known.
    """

    records: int
    median_ms: int
    late_ms: int
    slots: Sequence[Delay]


@dataclass(frozen=True, slots=True)
class TopicFacts:
    """
    The statistics of a topic; one without records has no times, sizes or keys.
    """

    name: str
    parts: Sequence[Part]
    lags: Sequence[Lag] = ()
    times: Times | None = None
    sizes: Sizes | None = None
    keys: Keys | None = None
    latency: Latency | None = None
    sent: str | None = field(default=None)  # where records say when they were sent

    @property
    def records(self) -> int:
        return sum(part.records for part in self.parts)

    @property
    def bytes(self) -> int:
        return sum(part.bytes for part in self.parts)


def lags(cluster: Cluster, extents: Mapping[TopicPartition, Extent]) -> dict[str, list[Lag]]:
    """
    The lags of groups with committed offsets, by topic.
    """
    found: dict[str, list[Lag]] = defaultdict(list)
    for group in cluster.retry(partial(list_groups, cluster)):
        if group.protocol_type not in _CONSUMERS:
            continue
        offsets = cluster.retry(partial(committed_offsets, cluster, group.group_id))
        for topic in {part.topic for part in offsets}:
            behind = _behind({part: at.offset for part, at in offsets.items() if part.topic == topic}, extents)
            if any(lag is not None for lag in behind.values()):
                found[topic].append(Lag(group.group_id, group.state or "-", behind))
    return found


def _behind(offsets: Mapping[TopicPartition, int], extents: Mapping[TopicPartition, Extent]) -> dict[int, int | None]:
    topics = {part.topic for part in offsets}
    wanted: Iterable[TopicPartition] = sorted(part for part in extents if part.topic in topics)
    return {part.index: max(extents[part].end - offsets[part], 0) if part in offsets else None for part in wanted}
