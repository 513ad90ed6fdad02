"""
What the system keeps of files in memory: written back, dropped, or counted.

Pages of a file are dropped once they are clean. Whether reads really went to disk is told by what the system counts for
the process that read, and whether writes did by the pages that are not clean; Linux tells those since 6.5.
"""

import ctypes
import errno
import os
from collections.abc import Iterator
from pathlib import Path


def write_back(folder: Path) -> None:
    """
    Sync the files of the folder to disk.
    """
    for opened in _opened(folder):
        os.fsync(opened)


def drop(folder: Path) -> None:
    """
    Drop the folder's files from the page cache, so that the next reader waits for the disk.
    """
    for opened in _opened(folder):
        os.fsync(opened)
        os.posix_fadvise(opened, 0, 0, os.POSIX_FADV_DONTNEED)


def read_from_disk(pid: int) -> int:
    """
    The bytes that the process has read from disk since it started.
    """
    counted = dict(line.split(": ") for line in Path(f"/proc/{pid}/io").read_text().splitlines())
    return int(counted["read_bytes"])


def unwritten_bytes(folder: Path, pattern: str) -> int | None:
    """
    The dirty bytes of these files, in whole pages; None if the system cannot tell.
    """
    files = list(folder.glob(pattern))
    assert files, f"{folder} has no {pattern}"
    libc = ctypes.CDLL(None, use_errno=True)
    dirty = 0
    for file in files:
        counted = _Counted()
        with file.open("rb") as opened:
            if libc.syscall(_CACHESTAT, opened.fileno(), ctypes.byref(_WHOLE_FILE), ctypes.byref(counted), 0):
                if ctypes.get_errno() == errno.ENOSYS:
                    return None
                raise OSError(ctypes.get_errno(), "cachestat", str(file))
        dirty += counted.dirty + counted.in_writeback
    return dirty * os.sysconf("SC_PAGE_SIZE")


class _Range(ctypes.Structure):
    _fields_ = [("offset", ctypes.c_uint64), ("length", ctypes.c_uint64)]


class _Counted(ctypes.Structure):
    _fields_ = [
        ("cached", ctypes.c_uint64),
        ("dirty", ctypes.c_uint64),
        ("in_writeback", ctypes.c_uint64),
        ("evicted", ctypes.c_uint64),
        ("recently_evicted", ctypes.c_uint64),
    ]


_CACHESTAT = 451  # the number of the system call, the same on every machine; C libraries have no name for it yet
_WHOLE_FILE = _Range(0, 0)


def _opened(folder: Path) -> Iterator[int]:
    """
    Each file in turn, as long as it is looked at; not those that the server drops meanwhile.
    """
    for place, _, names in os.walk(folder):
        for name in names:
            try:
                opened = os.open(Path(place, name), os.O_RDONLY)
            except FileNotFoundError:
                continue
            try:
                yield opened
            finally:
                os.close(opened)
