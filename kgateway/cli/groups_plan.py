"""
Where a group is to go on reading: what is asked for, held against what each log has.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from kgateway.client.offsets import Extent, Partition


class Wanted(NamedTuple):
    """
    An offset that is asked for, and what is to be said of it; without one, why not.
    """

    offset: int | None
    note: str = ""


@dataclass(frozen=True, slots=True)
class Move:
    """
    From where to where a group goes in one partition; without an aim it stays.
    """

    partition: Partition
    committed: int | None
    aim: int | None
    end: int | None
    note: str

    @property
    def lag(self) -> int | None:
        """
        How much it reads then.
        """
        return None if self.aim is None or self.end is None else self.end - self.aim


def plan(
    wanted: Mapping[Partition, Wanted], committed: Mapping[Partition, int], extents: Mapping[Partition, Extent]
) -> list[Move]:
    """
    The moves, none of which leads out of a log.
    """
    return [_move(one, wanted[one], committed.get(one), extents.get(one)) for one in sorted(wanted)]


def _move(partition: Partition, wanted: Wanted, committed: int | None, extent: Extent | None) -> Move:
    if extent is None:
        return Move(partition, committed, None, None, "there is no such partition")
    if wanted.offset is None:
        return Move(partition, committed, None, extent.end, wanted.note)
    aim = min(max(wanted.offset, extent.start), extent.end)
    note = wanted.note
    if wanted.offset < extent.start:
        note = f"{wanted.offset} was asked for, and the log begins at {extent.start}"
    elif wanted.offset > extent.end:
        note = f"{wanted.offset} was asked for, and the log ends at {extent.end}"
    return Move(partition, committed, aim, extent.end, note)
