"""
Truncates a log, and keeps what was cut off as `....log.cut-POSITION`, unless it is only the beginning of the one batch
that was being written.
"""

from collections.abc import Callable
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple

from kgateway.broker.log.files.disk import Disk, File
from kgateway.broker.log.files.file_cache import FileCache
from kgateway.broker.log.segments.batch_scan import Damage, is_unfinished
from kgateway.broker.log.segments.file_names import LOG, file_name
from kgateway.broker.log.segments.index import INDEX, TIME_INDEX
from kgateway.broker.log.segments.segment import Segment
from kgateway.broker.partition.transactions import ABORTED_INDEX
from kgateway.plurals import counted

_COPIED_AT_ONCE = 1 << 20


class Truncation(NamedTuple):
    """
    The work to do in a thread, and the line for the operator.
    """

    work: Callable[[], None]
    message: str


def plan_truncation(files: FileCache, segment: Segment, damage: Damage, size: int, known_end: int) -> Truncation:
    """
    Plan to truncate a segment of this size where the damage begins. Below the known end no batch was being written.
    """
    path, position, lost = segment.path, damage.position, size - damage.position
    next_offset = segment.next_offset
    unfinished = next_offset >= known_end and is_unfinished(files.get(path).read, position, size, next_offset)
    files.close(path)  # its size will change
    if unfinished:
        work, what = partial(_truncate, files.disk, path, position), "truncated: a batch was being written"
    else:
        aside = _kept_path(path, position)
        work = partial(_copy_and_truncate, files.disk, path, position, aside)
        what = f"{damage.reason}; truncated; {aside.name} has the {counted(lost, 'byte')} from there on"
    return Truncation(work, f"{path}, byte {position}: {what}")


def plan_setting_aside(disk: Disk, folder: Path, base: int) -> Truncation:
    """
    Plan to rename a whole segment that stands after the end of the log.
    """
    path = folder / file_name(base, LOG)
    aside = _kept_path(path, 0)
    message = f"{path}: the records before this segment are missing; the segment is kept as {aside.name}"
    return Truncation(partial(_rename, disk, path, aside), message)


def _kept_path(path: Path, position: int) -> Path:
    return path.with_name(f"{path.name}.cut-{position}")


def _truncate(disk: Disk, path: Path, position: int) -> None:
    with closing(disk.open(path)) as file:
        file.truncate(position)
        file.sync()  # otherwise the cut bytes might come back after the next records


def _copy_and_truncate(disk: Disk, path: Path, position: int, aside: Path) -> None:
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
    disk.sync_folder(path.parent)  # otherwise it might come back after the next records
