"""
What a log cannot go on with is cut off, and kept beside it as `....log.cut-POSITION`, unless it is only the beginning
of the one batch that was just being written.
"""

from contextlib import closing, suppress
from pathlib import Path

from kgateway.broker.log.disk import Disk, File
from kgateway.broker.log.open_files import OpenFiles
from kgateway.broker.log.segment import INDEX, LOG, TIME_INDEX, Segment, file_name
from kgateway.broker.log.walking import Damage, is_unfinished
from kgateway.records.batch import PLACE_SIZE

_COPIED_AT_ONCE = 1 << 20


def cut(files: OpenFiles, segment: Segment, damage: Damage, size: int) -> str:
    """
    End a segment of this size where the damage begins; what the operator is told.
    """
    position, lost, file = damage.position, size - damage.position, files.get(segment.path)
    if is_unfinished(file.read(position, PLACE_SIZE), segment.next_offset, lost):
        what = "a batch that was just being written was cut off"
    else:
        aside = _aside(segment.path, position)
        _copy(files.disk, file, position, aside)
        what = f"{damage.reason}; the log ends there, and the {lost} bytes from there on are kept in {aside.name}"
    file.truncate(position)
    file.sync()  # or what was cut off might come back behind what is written next
    return f"{segment.path}, byte {position}: {what}"


def set_aside(disk: Disk, folder: Path, base: int) -> str:
    """
    Take a whole segment away that stands behind the end of the log; what the operator is told.
    """
    path = folder / file_name(base, LOG)
    aside = _aside(path, 0)
    disk.rename(path, aside)
    for suffix in (INDEX, TIME_INDEX):
        with suppress(FileNotFoundError):
            disk.remove(path.with_suffix(suffix))
    disk.sync_folder(folder)  # or it might come back behind what is written next
    return f"{path}: what stands before it is missing; it is kept as {aside.name}"


def _aside(path: Path, position: int) -> Path:
    return path.with_name(f"{path.name}.cut-{position}")


def _copy(disk: Disk, file: File, position: int, aside: Path) -> None:
    with closing(disk.open(aside, create=True)) as copy:
        copy.truncate(0)
        while data := file.read(position, _COPIED_AT_ONCE):
            copy.append([data])
            position += len(data)
        copy.sync()
    disk.sync_folder(aside.parent)
