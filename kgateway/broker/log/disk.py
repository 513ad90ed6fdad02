"""
What the log asks of a file system.

Everything the log knows of files goes through here, so a test can put a disk under it that forgets what was not synced.
The rules are those of POSIX: what is written is seen by every later read, and survives the end of the process; the end
of the machine it survives only if the file was synced since, and the file itself only if its folder was.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from kgateway.wire.types import Buffer

TEMPORARY = ".tmp"  # how the name of a small file ends that is not yet in its place


class NotOpened(OSError):
    """
    A folder could not be opened, as where a process has too many files: it was not synced in vain.
    """


class File(Protocol):
    """
    An open file, written at its end. Failures are OSErrors.
    """

    size: int

    def append(self, buffers: Sequence[Buffer]) -> None:
        """
        Write these few pieces behind what is there. Where that fails, nothing of them is left.
        """

    def read(self, position: int, size: int) -> bytes:
        """
        The bytes there, fewer at the end of the file; waits for the disk.
        """

    def read_into(self, buffer: memoryview, position: int) -> int:
        """
        Fill the buffer as far as that needs no disk; how many bytes that were.
        """

    def truncate(self, size: int) -> None:
        """
        Cut what is behind.
        """

    def sync(self) -> None:
        """
        Return when all that was written will outlast the machine.
        """

    def write_again(self, position: int, size: int) -> None:
        """
        Write what is there once more, for a sync that failed may have left it to be forgotten.
        """

    def write_early(self, position: int, size: int) -> None:
        """
        Let the disk begin to write this part, and promise nothing.
        """

    def close(self) -> None:
        """
        Give the descriptor back.
        """


class Disk(Protocol):
    """
    A file system.
    """

    def open(self, path: Path, *, create: bool = False) -> File:
        """
        A file for reading and appending.
        """

    def read(self, path: Path) -> bytes:
        """
        All of a small file.
        """

    def write(self, path: Path, data: bytes, *, sync: bool) -> None:
        """
        Put a small file in place of what was there, wholly or not at all; with `sync` it will outlast the machine.
        """

    def names(self, folder: Path) -> dict[str, int]:
        """
        What is in a folder, with its size.
        """

    def changed_ms(self, path: Path) -> int:
        """
        When a file was last written to, by the wall clock.
        """

    def set_changed_ms(self, path: Path, changed_ms: int) -> None:
        """
        Let a file be one that was last written to then.
        """

    def make_folder(self, folder: Path) -> None:
        """
        Make it, and those around it, where it is not there.
        """

    def sync_folder(self, folder: Path) -> None:
        """
        Return when the names in it will outlast the machine; NotOpened where that could not even be begun.
        """

    def rename(self, old: Path, new: Path) -> None:
        """
        Move a file or folder.
        """

    def remove(self, path: Path) -> None:
        """
        Remove a file, or an empty folder.
        """
