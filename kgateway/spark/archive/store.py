"""
Where the files of archives are. What an archive is does not depend on it: it is in a folder of this machine, or in one
of a filer of SeaweedFS.

Nobody sees a file that is being made. It gets its name when all of it is there, and only if nothing else has that name;
so of two that make the same one wins, and the other hears of it.
"""

import os
import shutil
import uuid
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path, PurePath
from typing import Any, Protocol

import pyarrow as pa

from kgateway.spark.remote_access import Access
from kgateway.spark.remote_paths import UrlPath

PART = ".part-"  # how the names of files begin that are being made


class Store(Protocol):
    """
    A tree of files. What is not there is a FileNotFoundError; all other failures are OSErrors.
    """

    def names(self, folder: PurePath) -> list[str]:
        """
        What is in a folder; nothing where there is none.
        """

    def folders(self, folder: PurePath) -> list[str]:
        """
        Those of them that are folders themselves.
        """

    def has(self, path: PurePath) -> bool:
        """
        Whether there is such a file.
        """

    def open(self, path: PurePath) -> pa.NativeFile:
        """
        A file, to be read here and there.
        """

    def make(self, folder: PurePath) -> "Making":
        """
        A file that is to be in a folder, which is made where it is not there.
        """

    def move(self, source: PurePath, target: PurePath) -> None:
        """
        Give a file another name. It takes the place of one that has that.
        """

    def remove(self, path: PurePath) -> None:
        """
        Take a file away.
        """

    def remove_folder(self, folder: PurePath) -> None:
        """
        Take a folder away, with all that is in it, if it is there.
        """

    def settle(self, folder: PurePath) -> None:
        """
        Have the names in a folder outlast a loss of power.
        """


class Making(Protocol):
    """
    A file that is being made.
    """

    def write(self, data: Any) -> int:
        """
        More of it.
        """

    def name(self, name: str) -> None:
        """
        That was all: have it in its folder. FileExistsError where something has that name.
        """

    def give_up(self) -> None:
        """
        Leave nothing of it, unless it has its name.
        """


def store_of(path: PurePath, access: Access) -> Store:
    """
    Where this path leads to.
    """
    if isinstance(path, UrlPath):
        from kgateway.spark.filer.store import filer_store  # needs what only SeaweedFS needs

        return filer_store(path.origin, access)
    return LocalStore()


def read(store: Store, path: PurePath) -> bytes:
    """
    All of a small file.
    """
    with store.open(path) as file:
        return bytes(file.read())


def remove_all(store: Store, folder: PurePath, names: Collection[str]) -> None:
    """
    Take these files of a folder away, where others have not done it.
    """
    for name in names:
        with suppress(FileNotFoundError):
            store.remove(folder / name)


class LocalStore:
    """
    This machine.
    """

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

    def make(self, folder: PurePath) -> "LocalMaking":
        return LocalMaking(Path(folder))

    def move(self, source: PurePath, target: PurePath) -> None:
        os.replace(source, target)

    def remove(self, path: PurePath) -> None:
        os.unlink(path)

    def remove_folder(self, folder: PurePath) -> None:
        shutil.rmtree(folder, ignore_errors=True)

    def settle(self, folder: PurePath) -> None:
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


class LocalMaking:
    """
    It has a name of its own, and is linked to its real one when it is on the disk.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._part = folder / f"{PART}{uuid.uuid4().hex}"
        self._file = open(self._part, "xb")  # noqa: SIM115, `give_up` or `name` closes it

    def write(self, data: Any) -> int:
        return self._file.write(data)

    def name(self, name: str) -> None:
        self._file.flush()
        os.fsync(self._file.fileno())
        try:
            os.link(self._part, self._folder / name)
        finally:
            self.give_up()
        LocalStore().settle(self._folder)

    def give_up(self) -> None:
        self._file.close()
        with suppress(FileNotFoundError):
            self._part.unlink()
