"""
Looks at a data folder without touching it, whether somebody uses it or not.
"""

import fcntl
import os
import struct
import sys
from pathlib import Path

from kgateway.broker.log.folder_lock import LOCK
from kgateway.broker.log.local_disk import LocalDisk, LocalFile

_lock = struct.Struct("hhqqi4x")  # Linux: type, whence, start, length, process


class ReadingDisk(LocalDisk):
    """
    The file system of this machine for those who only look. What the log's own code writes when it opens a file, a
    journal without its old lines say, is left out.
    """

    def open(self, path: Path, *, create: bool = False) -> LocalFile:
        return LocalFile(os.open(path, os.O_RDONLY | os.O_CLOEXEC))

    def write(self, path: Path, data: bytes, *, sync: bool) -> None:
        pass

    def make_folder(self, folder: Path) -> None:
        pass

    def sync_folder(self, folder: Path) -> None:
        pass

    def rename(self, old: Path, new: Path) -> None:
        pass

    def remove(self, path: Path) -> None:
        pass


def holder(folder: Path) -> str | None:
    """
    Which other process has the folder now. To ask does not take the lock, so no start fails meanwhile. Only Linux can
    be asked so; elsewhere it seems to be nobody. Not for a process that has the lock itself: it would lose it.
    """
    if sys.platform != "linux":
        return None
    try:
        descriptor = os.open(folder / LOCK, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        asked = _lock.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
        kind, _, _, _, process = _lock.unpack(fcntl.fcntl(descriptor, fcntl.F_GETLK, asked))
    finally:
        os.close(descriptor)
    if kind == fcntl.F_UNLCK:
        return None
    return f"process {process}" if process > 0 else "another process"  # one of another container has no number here
