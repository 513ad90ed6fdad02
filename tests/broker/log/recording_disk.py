"""
A disk that records its operations, and fails on request.
"""

import os
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from kgateway.broker.log.files.disk import File, NotOpened
from kgateway.broker.log.files.local_disk import LocalDisk, LocalFile
from kgateway.wire.types import Buffer


class RecordingDisk(LocalDisk):
    """
    Records its operations, and fails on request. Nothing is really synced, for speed.
    """

    def __init__(self) -> None:
        self.done: list[tuple[str, str]] = []  # operation, name of the file
        self.read_bytes: Counter[str] = Counter()
        self.failing: dict[str, int] = {}  # operation, possibly with suffix, name or folder/name: its error
        self.cold = False  # whether every read has to wait
        self.opened: set[NotedFile] = set()

    def count(self, operation: str, suffix: str = "") -> int:
        """
        The number of such operations on files with this suffix.
        """
        return sum(done == operation and name.endswith(suffix) for done, name in self.done)

    def note(self, operation: str, path: Path) -> None:
        """
        Record an operation before it is carried out.
        """
        self.check(operation, path)
        self.done.append((operation, path.name))

    def check(self, operation: str, path: Path) -> None:
        """
        Fail if the test wants it.
        """
        targets = ("", f" {path.suffix}", f" {path.name}", f" {path.parent.name}/{path.name}")
        for which in (operation + target for target in targets):
            if which in self.failing:
                code = self.failing[which]
                raise OSError(code, os.strerror(code), str(path))

    def open(self, path: Path, *, create: bool = False) -> "NotedFile":
        self.note("open", path)
        file = NotedFile(os.open(path, os.O_RDWR | (os.O_CREAT if create else 0), 0o644), path, self)
        self.opened.add(file)
        return file

    def read(self, path: Path) -> bytes:
        self.note("read", path)
        data = super().read(path)
        self.read_bytes[path.name] += len(data)
        return data

    def write(self, path: Path, data: bytes, *, sync: bool) -> None:
        self.note("write", path)
        super().write(path, data, sync=False)
        if sync:
            self.note("sync", path)

    def names(self, folder: Path) -> dict[str, int]:
        self.note("names", folder)
        return super().names(folder)

    def make_folder(self, folder: Path) -> None:
        self.note("make_folder", folder)
        super().make_folder(folder)

    def sync_files(self, files: Sequence[File]) -> list[OSError | None]:
        """
        Sync the files one after another.
        """
        self.check("sync_files", Path())
        return [_failure(file.sync) for file in files]

    def sync_folder(self, folder: Path) -> None:
        try:
            self.check("open_folder", folder)
        except OSError as error:
            raise NotOpened(error.errno, error.strerror, str(folder)) from None
        self.note("sync_folder", folder)

    def rename(self, old: Path, new: Path) -> None:
        self.note("rename", old)
        super().rename(old, new)

    def remove(self, path: Path) -> None:
        self.note("remove", path)
        super().remove(path)


def _failure(sync: Callable[[], None]) -> OSError | None:
    try:
        sync()
    except OSError as error:
        return error
    return None


class NotedFile(LocalFile):
    def __init__(self, descriptor: int, path: Path, disk: RecordingDisk) -> None:
        super().__init__(descriptor)
        self.path = path
        self._disk = disk

    def append(self, buffers: Sequence[Buffer]) -> None:
        self._disk.note("append", self.path)
        super().append(buffers)

    def read(self, position: int, size: int) -> bytes:
        self._disk.note("read_at", self.path)
        data = super().read(position, size)
        self._disk.read_bytes[self.path.name] += len(data)
        return data

    def read_into(self, buffer: memoryview, position: int) -> int:
        return 0 if self._disk.cold else super().read_into(buffer, position)

    def truncate(self, size: int) -> None:
        self._disk.note("truncate", self.path)
        super().truncate(size)

    def sync(self) -> None:
        self._disk.note("sync", self.path)

    def write_again(self, position: int, size: int) -> None:
        self._disk.note(f"write again {position} {size}", self.path)
        super().write_again(position, size)

    def write_early(self, position: int, size: int) -> None:
        self._disk.note(f"write early {position} {size}", self.path)

    def close(self) -> None:
        self._disk.opened.discard(self)
        super().close()
