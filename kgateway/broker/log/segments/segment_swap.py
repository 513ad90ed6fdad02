"""
Puts rewritten segments in the place of those they were made from, so that after a
crash there are either all the old segments or all the new ones.

`kgateway.compacted` in the folder of the partition decides:

    0               the version of the format
    TOKEN           whose files these are (cleaned_segment.py)
    2               how many lines follow
    0 5000          a rewritten segment: its base, and the offset after it
    5000 9000

It is written once the rewritten segments are synced. From then on they count; the next start finishes what a crash
interrupts. The file is removed once the new names are synced too.
"""

import re
from collections.abc import Collection, Iterable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from kgateway.broker.log.files.disk import Disk
from kgateway.broker.log.segments.cleaned_segment import FILES, cleaned_name
from kgateway.broker.log.segments.file_names import CLEANED_SUFFIX, COMPACTED, DELETED_SUFFIX, LOG, file_name, numbered
from kgateway.broker.partition.producer_snapshot import SNAPSHOT

_VERSION = "0"
_ROW = re.compile("([0-9]{1,19}) ([0-9]{1,19})")


class OffsetRange(NamedTuple):
    """
    The base of a rewritten segment, and the offset after it.
    """

    base: int
    end: int


class Decision(NamedTuple):
    """
    Which rewritten segments count.
    """

    token: str
    ranges: list[OffsetRange]

    def encoded(self) -> bytes:
        rows = [f"{replaced.base} {replaced.end}\n" for replaced in self.ranges]
        return f"{_VERSION}\n{self.token}\n{len(rows)}\n{''.join(rows)}".encode()


def read_decision(data: bytes) -> Decision | None:
    """
    Read the file; `None` if it is damaged.
    """
    try:
        version, token, count, *rows = data.decode().split("\n")
    except ValueError:
        return None
    found = [_ROW.fullmatch(row) for row in rows if row]
    if version != _VERSION or not token or count != str(len(found)) or not all(found):
        return None
    return Decision(token, [OffsetRange(int(row[1]), int(row[2])) for row in found if row])


def swap_segment(disk: Disk, folder: Path, names: Iterable[str], token: str, offsets: OffsetRange) -> list[Path]:
    """
    Give a rewritten segment its final names, as far as it does not have them yet, and mark the files it replaces as
    deleted. Returns these.
    """
    names = set(names)
    replaced = (name for name in names if _is_replaced(name, offsets, names))
    # The .log last: while it is there, an interrupted swap still knows that its snapshot goes too.
    gone = sorted(replaced, key=lambda name: name.endswith(LOG))
    for suffix in FILES:
        name, cleaned = file_name(offsets.base, suffix), cleaned_name(offsets.base, suffix, token)
        if cleaned in names and name in names:
            gone.append(name)
    renamed = [_rename(disk, folder / name, folder / f"{name}{DELETED_SUFFIX}") for name in gone]
    for suffix in FILES:
        cleaned = cleaned_name(offsets.base, suffix, token)
        if cleaned in names:
            disk.rename(folder / cleaned, folder / file_name(offsets.base, suffix))
    return renamed


def _is_replaced(name: str, offsets: OffsetRange, names: Collection[str]) -> bool:
    offset, suffix = numbered(name) or (offsets.base, "")
    is_within = offsets.base < offset < offsets.end
    return is_within and (suffix != SNAPSHOT or file_name(offset, LOG) in names)


def _rename(disk: Disk, path: Path, gone: Path) -> Path:
    with suppress(FileNotFoundError):
        disk.rename(path, gone)
    return gone


def finish_swap(disk: Disk, folder: Path) -> None:
    """
    Finish a swap that a crash interrupted. A decision that cannot be read was never completely written, so no swap has
    begun.
    """
    decision = read_decision(disk.read(folder / COMPACTED))
    if decision:
        for replaced in decision.ranges:
            swap_segment(disk, folder, disk.names(folder), decision.token, replaced)
    remove_decision(disk, folder)


def remove_decision(disk: Disk, folder: Path) -> None:
    """
    Remove the decision once the swap is complete: no later process may find it.
    """
    disk.sync_folder(folder)
    disk.remove(folder / COMPACTED)
    disk.sync_folder(folder)


def discard_rewritten(disk: Disk, folder: Path, token: str) -> None:
    """
    Remove what a round has written, unless it was decided that it counts.
    """
    names = disk.names(folder)
    if COMPACTED not in names:
        for name in names:
            if name.endswith(f".{token}{CLEANED_SUFFIX}"):
                disk.remove(folder / name)
