"""
How far a group has read.
"""

from dataclasses import dataclass

from kgateway.client.cluster import Cluster
from kgateway.client.groups import Described
from kgateway.client.offsets import LATEST, Committed, Found, Partition, committed, found


@dataclass(frozen=True, slots=True)
class Reading:
    """
    How far a partition is read. Nothing may be committed, and the partition may be gone.
    """

    partition: Partition
    committed: Committed | None
    end: int | None
    member_id: str | None

    @property
    def lag(self) -> int | None:
        """
        How many offsets are yet to be read.
        """
        if self.committed is None or self.end is None:
            return None
        return max(self.end - self.committed.offset, 0)


def read_by(cluster: Cluster, group: Described) -> list[Reading]:
    """
    The partitions that the group has committed offsets of, or that its members are to read.
    """
    offsets = committed(cluster, group.group_id)
    owners = {
        Partition(topic, index): member.member_id
        for member in group.members
        for topic, indexes in (member.assigned or {}).items()
        for index in indexes
    }
    partitions = sorted(offsets.keys() | owners.keys())
    ends = found(cluster, partitions, LATEST)
    return [Reading(one, offsets.get(one), _end(ends.get(one)), owners.get(one)) for one in partitions]


def _end(place: Found | None) -> int | None:
    return place.offset if place else None
