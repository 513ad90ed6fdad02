"""
Where the files of a log are read from. What they are does not depend on it: a folder of this machine, or one behind
HTTP.
"""

import os
from contextlib import suppress
from pathlib import PurePath
from typing import Protocol


class Files(Protocol):
    """
    A tree of files. What is not there is a FileNotFoundError; all other failures are OSErrors.
    """

    def names(self, folder: PurePath) -> dict[str, int]:
        """
        What is in a folder, and how large.
        """

    def read(self, path: PurePath) -> bytes:
        """
        A small file.
        """

    def open(self, path: PurePath) -> "OpenFile":
        """
        A large one, which can be read to its end even if it is removed meanwhile.
        """


class OpenFile(Protocol):
    """
    A file that is read here and there.
    """

    def read(self, position: int, size: int) -> bytes:
        """
        The bytes there, fewer at the end of the file.
        """

    def close(self) -> None:
        """
        Let go of it.
        """


class LocalFiles:
    """
    Those of this machine.
    """

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
    """
    An open file of this machine.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def read(self, position: int, size: int) -> bytes:
        return os.pread(self._descriptor, size, position)  # at most 2 GiB at once, and never that much is asked for

    def close(self) -> None:
        os.close(self._descriptor)
