"""
How much is in topics.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from kgateway.client.cluster import Cluster
from kgateway.client.offsets import EARLIEST, LATEST, Extent, Partition, found_each
from kgateway.client.topics import Topic, sizes


@dataclass(frozen=True, slots=True)
class Content:
    """
    Where the logs of a topic begin and end and what they take of the disks of their leaders, as far as that is told.
    """

    extents: dict[Partition, Extent]
    sizes: dict[Partition, int]
    parts: int

    @property
    def records(self) -> int | None:
        """
        How many offsets there are, where all leaders have told.
        """
        return sum(one.end - one.start for one in self.extents.values()) if len(self.extents) == self.parts else None

    @property
    def bytes(self) -> int | None:
        """
        The same of the disks.
        """
        return sum(self.sizes.values()) if len(self.sizes) == self.parts else None


def content(cluster: Cluster, wanted: Sequence[Topic]) -> dict[str, Content]:
    """
    What each topic has, by name.
    """
    leaders = {part.partition: part.leader for topic in wanted for part in topic.parts if part.leader}
    starts, ends = found_each(cluster, leaders, EARLIEST), found_each(cluster, leaders, LATEST)
    taken = sizes(cluster, wanted)
    return {
        topic.name: Content(
            {
                part.partition: Extent(starts[part.partition].offset or 0, ends[part.partition].offset or 0)
                for part in topic.parts
                if part.partition in starts and part.partition in ends
            },
            {part.partition: taken[part.partition] for part in topic.parts if part.partition in taken},
            len(topic.parts),
        )
        for topic in wanted
    }
