"""
What the log asks of a file system.

Everything the log knows of files passes through here, so a test can put a disk under it that loses what was not synced.
The rules are those of POSIX: what is written is seen by every later read, and survives a crash of the process; it
survives a crash of the machine only if the file was synced since, and the file itself only if its folder was.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from kgateway.wire.types import Buffer

TEMPORARY = ".tmp"  # of a small file that is not yet in its place


class NotOpened(OSError):
    """
    A folder could not be opened for a sync, as when a process has too many files: no sync has failed.
    """


class File(Protocol):
    """
    An open file, written at its end. Failures are OSErrors.
    """

    size: int

    def append(self, buffers: Sequence[Buffer]) -> None:
        """
        Write a few pieces at the end. If that fails, nothing of them remains.
        """

    def read(self, position: int, size: int) -> bytes:
        """
        The bytes there, fewer at the end of the file; waits for the disk.
        """

    def read_into(self, buffer: memoryview, position: int) -> int:
        """
        Fill the buffer from the page cache. Returns how many bytes that had.
        """

    def truncate(self, size: int) -> None: ...

    def sync(self) -> None:
        """
        fsync: return once everything written is synced.
        """

    def write_again(self, position: int, size: int) -> None:
        """
        Write once more what is there: after a failed sync the system may believe it is on the disk, and lose it.
        """

    def write_early(self, position: int, size: int) -> None:
        """
        Let the disk begin to write this part, without any promise.
        """

    def close(self) -> None: ...


class Disk(Protocol):
    def open(self, path: Path, *, create: bool = False) -> File: ...

    def read(self, path: Path) -> bytes: ...

    def write(self, path: Path, data: bytes, *, sync: bool) -> None:
        """
        Replace a small file, wholly or not at all; with `sync` the new one is synced.
        """

    def names(self, folder: Path) -> dict[str, int]:
        """
        The names in a folder, and the size of each file.
        """

    def changed_ms(self, path: Path) -> int:
        """
        When a file was last written to, by the wall clock.
        """

    def set_changed_ms(self, path: Path, changed_ms: int) -> None: ...

    def make_folder(self, folder: Path) -> None:
        """
        Make a folder, and its parents, if there is none.
        """

    def sync_files(self, files: Sequence[File]) -> list[OSError | None]:
        """
        fsync several files at the same time: return once all fsyncs have ended. Returns why they failed, for each file.
        """

    def sync_folder(self, folder: Path) -> None:
        """
        fsync a folder: return once its names are synced. Raises NotOpened if no sync was tried.
        """

    def rename(self, old: Path, new: Path) -> None: ...

    def remove(self, path: Path) -> None:
        """
        Remove a file, or an empty folder.
        """
