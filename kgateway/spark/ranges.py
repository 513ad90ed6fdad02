"""
Pieces of a topic: offsets of one partition, from one on and up to another.
"""

from dataclasses import dataclass

from kgateway.client.offsets import Partition


@dataclass(frozen=True, slots=True, order=True)
class OffsetRange:
    """
    The offsets from `start` up to `end`, which is not among them.
    """

    partition: Partition
    start: int
    end: int

    def __len__(self) -> int:
        return max(self.end - self.start, 0)

    def __str__(self) -> str:
        return f"{self.partition}, offsets {self.start} to {self.end - 1}"
