"""
Where a gateway keeps its partitions, as administrators are told: one place, however many disks are behind it.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from kgateway.wire.uuids import Uuid

UNKNOWN = -1  # a number of bytes that nobody can tell

PartitionKey = tuple[Uuid, int]  # the id of a topic, and the index of one of its partitions
Places = Iterable[PartitionKey]


class Measured(NamedTuple):
    """
    How many bytes partitions take, and how much room there is where they are. A partition that has no place yet, or not
    any more, is not among them.
    """

    sizes: Mapping[PartitionKey, int]
    total_bytes: int = UNKNOWN
    usable_bytes: int = UNKNOWN
