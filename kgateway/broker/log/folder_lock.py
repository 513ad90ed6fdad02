"""
What keeps a second process off a folder: Kafka's file `.lock`, locked as Kafka locks it, so Kafka is kept off too.

    4711            the process that has the lock, or had it last

The lock is the system's and ends with its process; the number is for people. The file stays: were it removed, one
process could have a lock on the removed file, and another on the next.

POSIX gives such a lock to a process, not to a descriptor: the process itself could take it again, and loses it when it
closes any descriptor of the file. So what this process has is noted, and no such file is opened a second time.
"""

import fcntl
import os
from contextlib import suppress
from errno import EACCES, EAGAIN
from pathlib import Path
from threading import Lock

from kgateway.broker.log.folder_error import FolderError

LOCK = ".lock"
_NUMBER_BYTES = 20
_noting = Lock()
_noted: set[tuple[int, int]] = set()  # the device and inode of each such file of this process


class FolderLock:
    """
    The lock of a folder, held from here on until it is released or the process ends. A FolderError where it is taken.
    """

    def __init__(self, folder: Path) -> None:
        path = folder / LOCK
        with _noting:
            with suppress(FileNotFoundError):
                if _identity(path.stat()) in _noted:
                    raise _taken(folder, f"this process, {os.getpid()}")
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            try:
                _take(descriptor, folder)
            except BaseException:
                os.close(descriptor)
                raise
            self._descriptor: int | None = descriptor
            _noted.add(_identity(os.fstat(descriptor)))

    def release(self) -> None:
        """
        Give it back.
        """
        with _noting:
            if self._descriptor is not None:
                _noted.remove(_identity(os.fstat(self._descriptor)))
                os.close(self._descriptor)
                self._descriptor = None


def _take(descriptor: int, folder: Path) -> None:
    try:
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno not in (EACCES, EAGAIN):
            raise
        number = os.pread(descriptor, _NUMBER_BYTES, 0).partition(b"\n")[0]
        raise _taken(folder, f"process {int(number)}" if number.isdigit() else "another process") from None
    number = b"%d\n" % os.getpid()
    os.pwrite(descriptor, number, 0)
    os.ftruncate(descriptor, len(number))  # afterwards: who reads meanwhile finds a whole first line


def _taken(folder: Path, holder: str) -> FolderError:
    return FolderError(f"{folder} is held by {holder}; end that one, or name another folder")


def _identity(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino
