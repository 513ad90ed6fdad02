"""
Keeps a second process off a folder by Kafka's file `.lock`, locked as Kafka locks it, so Kafka is kept off too.

    4711            the process that has the lock, or had it last

The lock is the system's and ends with its process; the number is for people. The file is never removed: otherwise one
process could have a lock on the removed file, and another on the next.

POSIX gives such a lock to a process, not to a descriptor: the process itself could take it again, and loses it when it
closes any descriptor of the file. So this process remembers which locks it has, and opens no such file a second time.
"""

import fcntl
import os
import struct
import sys
from contextlib import suppress
from errno import EACCES, EAGAIN
from pathlib import Path
from threading import Lock

from kgateway.broker.log.data_folder.folder_error import ANOTHER, FolderError

LOCK = ".lock"
_NUMBER_BYTES = 20
_FLOCK = struct.Struct("hhqqi4x")  # struct flock of Linux: type, whence, start, length, process
_guard = Lock()
_locked_files: set[tuple[int, int]] = set()  # the device and inode of each such file of this process


class FolderLock:
    """
    The lock of a folder, held until it is released or the process ends. Raises FolderError if another process has it.
    """

    def __init__(self, folder: Path) -> None:
        path = folder / LOCK
        with _guard:
            with suppress(FileNotFoundError):
                if _identity(path.stat()) in _locked_files:
                    raise _locked_by(folder, f"this process, {os.getpid()}")
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            try:
                _take(descriptor, folder)
            except BaseException:
                os.close(descriptor)
                raise
            self._descriptor: int | None = descriptor
            _locked_files.add(_identity(os.fstat(descriptor)))

    def release(self) -> None:
        with _guard:
            if self._descriptor is not None:
                _locked_files.remove(_identity(os.fstat(self._descriptor)))
                os.close(self._descriptor)
                self._descriptor = None


def _take(descriptor: int, folder: Path) -> None:
    try:
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno not in (EACCES, EAGAIN):
            raise
        number = os.pread(descriptor, _NUMBER_BYTES, 0).partition(b"\n")[0]
        raise _locked_by(folder, f"process {int(number)}" if number.isdigit() else "another process") from None
    number = b"%d\n" % os.getpid()
    os.pwrite(descriptor, number, 0)
    os.ftruncate(descriptor, len(number))  # afterwards, so that a reader finds a whole first line meanwhile


def _locked_by(folder: Path, holder: str) -> FolderError:
    return FolderError(f"{folder} is in use by {holder}; stop it, or {ANOTHER}")


def _identity(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino


def holder(folder: Path) -> str | None:
    """
    The process that has the folder locked. The lock is not taken for that, so no start fails meanwhile; only Linux can
    tell, elsewhere nobody seems to have it. A process that has the lock itself must not ask: it would lose it.
    """
    if sys.platform != "linux":
        return None
    try:
        descriptor = os.open(folder / LOCK, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        asked = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
        kind, _, _, _, process = _FLOCK.unpack(fcntl.fcntl(descriptor, fcntl.F_GETLK, asked))
    finally:
        os.close(descriptor)
    if kind == fcntl.F_UNLCK:
        return None
    return (
        f"process {process}" if process > 0 else "another process"
    )  # a process of another container has no number here
