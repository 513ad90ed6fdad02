"""
What a log cannot go on with is cut off, and kept beside it as `....log.cut-POSITION`, unless it is only the beginning
of the one batch that was just being written.
"""

from collections.abc import Callable
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple

from kgateway.broker.aborted import ABORTED_INDEX
from kgateway.broker.log.disk import Disk, File
from kgateway.broker.log.open_files import OpenFiles
from kgateway.broker.log.segment import LOG, Segment, file_name
from kgateway.broker.log.segment_indexes import INDEX, TIME_INDEX
from kgateway.broker.log.walking import Damage, is_unfinished

_COPIED_AT_ONCE = 1 << 20


class Cut(NamedTuple):
    """
    What is to be done, which waits for the disk, and what the operator is told.
    """

    work: Callable[[], None]
    told: str


def cut(files: OpenFiles, segment: Segment, damage: Damage, size: int, known_end: int) -> Cut:
    """
    End a segment of this size where the damage begins. Before the known end nothing was just being written.
    """
    path, position, lost = segment.path, damage.position, size - damage.position
    next_offset = segment.next_offset
    unfinished = next_offset >= known_end and is_unfinished(files.get(path).read, position, size, next_offset)
    files.close(path)  # its size will be another
    if unfinished:
        work, what = partial(_truncate, files.disk, path, position), "a batch that was just being written was cut off"
    else:
        aside = _aside(path, position)
        work = partial(_move, files.disk, path, position, aside)
        what = f"{damage.reason}; the log ends there, and the {lost} bytes from there on are kept in {aside.name}"
    return Cut(work, f"{path}, byte {position}: {what}")


def set_aside(disk: Disk, folder: Path, base: int) -> Cut:
    """
    Take a whole segment away that stands behind the end of the log.
    """
    path = folder / file_name(base, LOG)
    aside = _aside(path, 0)
    return Cut(
        partial(_rename, disk, path, aside), f"{path}: what stands before it is missing; it is kept as {aside.name}"
    )


def _aside(path: Path, position: int) -> Path:
    return path.with_name(f"{path.name}.cut-{position}")


def _truncate(disk: Disk, path: Path, position: int) -> None:
    with closing(disk.open(path)) as file:
        file.truncate(position)
        file.sync()  # or what was cut off might come back behind what is written next


def _move(disk: Disk, path: Path, position: int, aside: Path) -> None:
    with closing(disk.open(path)) as file, closing(disk.open(aside, create=True)) as copy:
        _copy(file, position, copy)
        copy.sync()
    disk.sync_folder(aside.parent)
    _truncate(disk, path, position)


def _copy(file: File, position: int, copy: File) -> None:
    copy.truncate(0)
    while data := file.read(position, _COPIED_AT_ONCE):
        copy.append([data])
        position += len(data)


def _rename(disk: Disk, path: Path, aside: Path) -> None:
    disk.rename(path, aside)
    for suffix in (INDEX, TIME_INDEX, ABORTED_INDEX):
        with suppress(FileNotFoundError):
            disk.remove(path.with_suffix(suffix))
    disk.sync_folder(path.parent)  # or it might come back behind what is written next
