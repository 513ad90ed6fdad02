"""
Where the files of archives are: in a folder of this machine, or in one of a SeaweedFS filer.

A file that is being written is invisible. It gets its name when it is complete, and only if the name is free; so of two
writers of the same file one succeeds, and the other gets an error.
"""

import os
import shutil
import uuid
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path, PurePath
from typing import Any, Protocol

import pyarrow as pa

from kgateway.spark.http.client import Access, UrlPath

PART = ".part-"  # prefix of files that are being written


class Store(Protocol):
    """
    A tree of files. A file that does not exist is a FileNotFoundError; all other failures are OSErrors.
    """

    def names(self, folder: PurePath) -> list[str]:
        """
        The names in a folder; none if the folder does not exist.
        """

    def folders(self, folder: PurePath) -> list[str]:
        """
        The names of sub-folders.
        """

    def has(self, path: PurePath) -> bool: ...

    def open(self, path: PurePath) -> pa.NativeFile:
        """
        Open a file with random access.
        """

    def make(self, folder: PurePath) -> "NewFile":
        """
        Create a file in a folder, which is created if necessary.
        """

    def move(self, source: PurePath, target: PurePath) -> None:
        """
        Rename a file atomically, replacing an existing file.
        """

    def remove(self, path: PurePath) -> None: ...

    def remove_folder(self, folder: PurePath) -> None:
        """
        Remove a folder with its contents, if it exists.
        """

    def sync(self, folder: PurePath) -> None:
        """
        Make the names in a folder durable.
        """


class NewFile(Protocol):
    """
    A file that is being written.
    """

    def write(self, data: Any) -> int: ...

    def finish(self, name: str) -> None:
        """
        Complete the file durably under this name; FileExistsError if the name is taken.
        """

    def discard(self) -> None:
        """
        Remove the file unless it has its final name.
        """


def store_of(path: PurePath, access: Access) -> Store:
    if isinstance(path, UrlPath):
        from kgateway.spark.seaweed.archive_store import filer_store  # imports what only SeaweedFS needs

        return filer_store(path.origin, access)
    return LocalStore()


def read_file(store: Store, path: PurePath) -> bytes:
    with store.open(path) as file:
        return bytes(file.read())


def remove_all(store: Store, folder: PurePath, names: Collection[str]) -> None:
    """
    Remove those of these files that exist.
    """
    for name in names:
        with suppress(FileNotFoundError):
            store.remove(folder / name)


class LocalStore:
    def names(self, folder: PurePath) -> list[str]:
        try:
            return os.listdir(folder)
        except FileNotFoundError:
            return []

    def folders(self, folder: PurePath) -> list[str]:
        return [name for name in self.names(folder) if os.path.isdir(folder / name)]

    def has(self, path: PurePath) -> bool:
        return os.path.exists(path)

    def open(self, path: PurePath) -> pa.NativeFile:
        return pa.OSFile(str(path), "rb")

    def make(self, folder: PurePath) -> "LocalNewFile":
        return LocalNewFile(Path(folder))

    def move(self, source: PurePath, target: PurePath) -> None:
        os.replace(source, target)

    def remove(self, path: PurePath) -> None:
        os.unlink(path)

    def remove_folder(self, folder: PurePath) -> None:
        shutil.rmtree(folder, ignore_errors=True)

    def sync(self, folder: PurePath) -> None:
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


class LocalNewFile:
    """
    A file under a temporary name, which is linked to its final name after an fsync.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._part = folder / f"{PART}{uuid.uuid4().hex}"
        self._file = open(self._part, "xb")  # noqa: SIM115, `discard` or `name` closes it

    def write(self, data: Any) -> int:
        return self._file.write(data)

    def finish(self, name: str) -> None:
        self._file.flush()
        os.fsync(self._file.fileno())
        try:
            os.link(self._part, self._folder / name)
        finally:
            self.discard()
        LocalStore().sync(self._folder)

    def discard(self) -> None:
        self._file.close()
        with suppress(FileNotFoundError):
            self._part.unlink()
