"""
Puts rewritten segments in the place of those they were made from, so that a crash leaves the ones or the others.

`kgateway.compacted` in the folder of the partition decides:

    0               the version of the form
    TOKEN           whose files these are (rewriting.py)
    2               how many lines follow
    0 5000          a rewritten segment: its base, and the offset behind it
    5000 9000

It is written once the rewritten segments will outlast the machine. From then on they count; what a crash leaves
undone, the next opening of the partition does. It goes when the new names will outlast the machine too.
"""

import re
from collections.abc import Collection, Iterable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from kgateway.broker.log.compaction.rewriting import FILES, cleaned_name
from kgateway.broker.log.disk import Disk
from kgateway.broker.log.found_files import COMPACTED, numbered
from kgateway.broker.log.segment import CLEANED, LET_GO, LOG, file_name
from kgateway.broker.producer_snapshots import SNAPSHOT

_VERSION = "0"
_ROW = re.compile("([0-9]{1,19}) ([0-9]{1,19})")


class Place(NamedTuple):
    """
    The offsets that a rewritten segment has: its base, and what is behind it.
    """

    base: int
    end: int


class Decision(NamedTuple):
    """
    Which rewritten segments count.
    """

    token: str
    places: list[Place]

    def written(self) -> bytes:
        """
        The file that says this.
        """
        rows = [f"{place.base} {place.end}\n" for place in self.places]
        return f"{_VERSION}\n{self.token}\n{len(rows)}\n{''.join(rows)}".encode()


def read_decision(data: bytes) -> Decision | None:
    """
    What the file says; `None` where it is damaged.
    """
    try:
        version, token, count, *rows = data.decode().split("\n")
    except ValueError:
        return None
    found = [_ROW.fullmatch(row) for row in rows if row]
    if version != _VERSION or not token or count != str(len(found)) or not all(found):
        return None
    return Decision(token, [Place(int(row[1]), int(row[2])) for row in found if row])


def swap(disk: Disk, folder: Path, names: Iterable[str], token: str, place: Place) -> list[Path]:
    """
    Give a rewritten segment its names, as far as it has not got them, and those it replaces others; these.
    """
    names = set(names)
    replaced = (name for name in names if _is_replaced(name, place, names))
    gone = sorted(replaced, key=lambda name: name.endswith(LOG))  # by which the snapshot beside it is known
    for suffix in FILES:
        name, cleaned = file_name(place.base, suffix), cleaned_name(place.base, suffix, token)
        if cleaned in names and name in names:
            gone.append(name)
    renamed = [_rename(disk, folder / name, folder / f"{name}{LET_GO}") for name in gone]
    for suffix in FILES:
        cleaned = cleaned_name(place.base, suffix, token)
        if cleaned in names:
            disk.rename(folder / cleaned, folder / file_name(place.base, suffix))
    return renamed


def _is_replaced(name: str, place: Place, names: Collection[str]) -> bool:
    """
    Whether it belongs to a segment that becomes a part of the one before it.
    """
    offset, suffix = numbered(name) or (place.base, "")
    is_within = place.base < offset < place.end
    return is_within and (suffix != SNAPSHOT or file_name(offset, LOG) in names)


def _rename(disk: Disk, path: Path, gone: Path) -> Path:
    with suppress(FileNotFoundError):
        disk.rename(path, gone)
    return gone


def finish(disk: Disk, folder: Path) -> None:
    """
    Do what a crash has left undone. A decision that cannot be read was never written whole, so nothing was begun.
    """
    decision = read_decision(disk.read(folder / COMPACTED))
    if decision:
        for place in decision.places:
            swap(disk, folder, disk.names(folder), decision.token, place)
    forget(disk, folder)


def forget(disk: Disk, folder: Path) -> None:
    """
    All has its place: nobody needs the decision any more, and no later process may find it.
    """
    disk.sync_folder(folder)
    disk.remove(folder / COMPACTED)
    disk.sync_folder(folder)


def discard(disk: Disk, folder: Path, token: str) -> None:
    """
    Nobody needs what this round has written, unless it was decided that it counts.
    """
    names = disk.names(folder)
    if COMPACTED not in names:
        for name in names:
            if name.endswith(f".{token}{CLEANED}"):
                disk.remove(folder / name)
