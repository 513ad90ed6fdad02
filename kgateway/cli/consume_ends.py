"""
How far is read.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from kgateway.cli.places import Kind, Place
from kgateway.client.offsets import Extent, Partition
from kgateway.records.record import Record


@dataclass(slots=True)
class Ends:
    """
    Where each log is done with; without an offset it goes on as long as anybody follows. A time that no record has yet
    is looked for in those that come.
    """

    offsets: dict[Partition, int | None]
    until_ms: int | None = None
    left: int | None = None  # how many records are wanted yet
    done: set[Partition] = field(default_factory=set)

    def take(self, partition: Partition, records: list[Record]) -> list[Record]:
        """
        Those of the records that are wanted.
        """
        end = self.offsets.get(partition)
        if end is not None and records and records[-1].offset >= end:
            records = [record for record in records if record.offset < end]
            self.done.add(partition)
        elif self.until_ms is not None and end is None:
            records = self._before(partition, records, self.until_ms)
        if self.left is not None:
            records = records[: self.left]
            self.left -= len(records)
        return records

    def look(self, partition: Partition, position: int) -> None:
        """
        Whether a log is done with, now that one is there.
        """
        end = self.offsets.get(partition)
        if end is not None and position >= end:
            self.done.add(partition)

    @property
    def has_enough(self) -> bool:
        """
        Whether no more records are wanted, of no log.
        """
        return self.left == 0

    def _before(self, partition: Partition, records: list[Record], until_ms: int) -> list[Record]:
        for place, record in enumerate(records):
            if record.timestamp >= until_ms:
                self.done.add(partition)
                return records[:place]
        return records


def ends(
    until: Place | None, found: Mapping[Partition, int | None], extents: Mapping[Partition, Extent], follow: bool
) -> Ends:
    """
    The ends; who does not follow goes no further than what is there now.
    """
    until_ms = until.number if until is not None and until.kind is Kind.TIME else None
    offsets: dict[Partition, int | None] = {}
    for partition, extent in extents.items():
        wanted = found.get(partition) if until is not None else None
        if follow:
            offsets[partition] = wanted
        else:
            offsets[partition] = extent.end if wanted is None else min(wanted, extent.end)
    return Ends(offsets, until_ms)
