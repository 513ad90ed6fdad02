"""
What an archive is made of: for each partition, tiles that follow one another without a hole. A tile is a file, or a gap
of offsets that the log had lost before they could be archived.
"""

import re
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

SUFFIX = ".parquet"
_TOPIC_MAX = 120  # characters in the name of a file, which has to fit into 255 bytes
_NAME = re.compile(r"(?P<topic>.+)-(?P<partition>\d+)-(?P<first>\d{20})-(?P<last>\d{20})-\d+-[0-9a-f]{8}\.parquet")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tile:
    """
    Offsets of a partition, from the first to the last.
    """

    partition: int
    first: int
    last: int

    @property
    def range(self) -> str:
        """
        For people.
        """
        return f"offset {self.first}" if self.first == self.last else f"offsets {self.first} to {self.last}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap(Tile):
    """
    Offsets that were not in the log any more when their turn came, as after retention or DeleteRecords.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class File(Tile):
    """
    A file, and what has to be in it.
    """

    name: str
    count: int  # records
    markers: int  # offsets of markers of transactions, which are no records
    aborted: int  # offsets of records that were aborted
    checksum: str  # of the records
    raw_bytes: int  # of keys, values and headers
    bytes: int  # of the file
    crc: str  # of the file
    removed: int = 0  # records that compaction of the archive has removed

    @property
    def compacted(self) -> int:
        """
        Offsets that compaction had removed from the log when they were archived.
        """
        return self.last - self.first + 1 - self.count - self.markers - self.aborted - self.removed


def file_name(topic: str, tile: Tile, count: int, checksum: str) -> str:
    """
    What a file is called that has these records.
    """
    return f"{topic[:_TOPIC_MAX]}-{tile.partition}-{tile.first:020}-{tile.last:020}-{count}-{checksum}{SUFFIX}"


def tile_of_name(topic: str, name: str) -> Tile | None:
    """
    The offsets that a file of this topic says to have; nothing where it is no such name.
    """
    match = _NAME.fullmatch(name)
    if match is None or match["topic"] != topic[:_TOPIC_MAX]:
        return None
    return Tile(partition=int(match["partition"]), first=int(match["first"]), last=int(match["last"]))


def to_json(tile: File | Gap) -> dict[str, Any]:
    """
    As it stands in a manifest.
    """
    return asdict(tile)


def of_json(told: dict[str, Any]) -> File | Gap:
    """
    The same, back.
    """
    return File(**told) if "name" in told else Gap(**told)


def holes(tiles: list[Tile]) -> list[tuple[Tile, Tile]]:
    """
    Neighbours in one partition that do not follow one another: there is a hole between them, or they overlap.
    """
    return [(one, other) for one, other in pairwise(tiles) if one.last + 1 != other.first]
