"""
The files of a log, in a local folder or behind HTTP.
"""

import os
from contextlib import suppress
from pathlib import PurePath
from typing import Protocol


class Files(Protocol):
    """
    A tree of files. A file that does not exist is a FileNotFoundError; all other failures are OSErrors.
    """

    def names(self, folder: PurePath) -> dict[str, int]:
        """
        The names and sizes of a folder's files.
        """

    def read(self, path: PurePath) -> bytes:
        """
        Read a small file.
        """

    def open(self, path: PurePath) -> "OpenFile":
        """
        Open a large file. It can be read to its end even if it is removed meanwhile.
        """


class OpenFile(Protocol):
    """
    A file with random access.
    """

    def read(self, position: int, size: int) -> bytes:
        """
        The bytes at a position, fewer at the end of the file.
        """

    def close(self) -> None: ...


class LocalFiles:
    def names(self, folder: PurePath) -> dict[str, int]:
        found = {}
        with os.scandir(folder) as entries:
            for entry in entries:
                with suppress(FileNotFoundError):  # it was removed meanwhile
                    found[entry.name] = entry.stat().st_size
        return found

    def read(self, path: PurePath) -> bytes:
        with open(path, "rb") as file:
            return file.read()

    def open(self, path: PurePath) -> "LocalFile":
        return LocalFile(os.open(path, os.O_RDONLY | os.O_CLOEXEC))


class LocalFile:
    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def read(self, position: int, size: int) -> bytes:
        return os.pread(self._descriptor, size, position)  # at most 2 GiB at once; callers ask for less

    def close(self) -> None:
        os.close(self._descriptor)
