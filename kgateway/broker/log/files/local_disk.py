"""
The file system of this machine.
"""

import ctypes
import os
from collections.abc import Sequence
from contextlib import suppress
from errno import EAGAIN, EINVAL, ENOSYS, EOPNOTSUPP
from itertools import count
from pathlib import Path
from threading import get_ident
from typing import cast

from kgateway.broker.log.files.concurrent_fsync import ConcurrentFsync, datasync
from kgateway.broker.log.files.disk import TEMPORARY, File, NotOpened
from kgateway.wire.types import Buffer

_NOWAIT = getattr(os, "RWF_NOWAIT", 0)
_NOT_KNOWN = (EINVAL, ENOSYS, EOPNOTSUPP)
_COPIED_AT_ONCE = 1 << 20
_START_WRITING = 2  # SYNC_FILE_RANGE_WRITE
_CLOSED = -1
_temporary = count()


class LocalFile:
    __slots__ = ("_cached_reads", "_descriptor", "size")

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._cached_reads = bool(_NOWAIT)
        self.size = os.fstat(descriptor).st_size

    def append(self, buffers: Sequence[Buffer]) -> None:
        written, wanted = os.pwritev(self._descriptor, buffers, self.size), sum(map(len, buffers))
        if written == wanted:
            self.size += wanted
        else:
            self._write_rest(b"".join(buffers), written)

    def read(self, position: int, size: int) -> bytes:
        found = os.pread(self._descriptor, size, position)
        if len(found) == size:
            return found
        parts = [found]
        while found and (size := size - len(found)):
            position += len(found)
            found = os.pread(self._descriptor, size, position)
            parts.append(found)
        return b"".join(parts)

    def read_into(self, buffer: memoryview, position: int) -> int:
        if not self._cached_reads:
            return 0
        try:
            return os.preadv(self._descriptor, [buffer], position, _NOWAIT)
        except OSError as error:
            if error.errno in _NOT_KNOWN:
                self._cached_reads = False
            elif error.errno != EAGAIN:
                raise
            return 0

    def truncate(self, size: int) -> None:
        os.ftruncate(self._descriptor, size)
        self.size = size

    def sync(self) -> None:
        datasync(self._descriptor)

    def write_again(self, position: int, size: int) -> None:
        for start in range(position, position + size, _COPIED_AT_ONCE):
            data = self.read(start, min(_COPIED_AT_ONCE, position + size - start))
            os.pwrite(self._descriptor, data, start)  # its blocks are allocated, so the write cannot fall short

    def write_early(self, position: int, size: int) -> None:
        if _sync_file_range:
            _sync_file_range(self._descriptor, ctypes.c_int64(position), ctypes.c_int64(size), _START_WRITING)

    @property
    def descriptor(self) -> int:
        return self._descriptor

    def close(self) -> None:
        descriptor, self._descriptor = self._descriptor, _CLOSED
        os.close(descriptor)

    def __del__(self) -> None:
        if self._descriptor != _CLOSED:  # nobody can close it any more
            self.close()

    def _write_rest(self, data: bytes, written: int) -> None:
        """
        Continue a short write; a second one tells why it was short.
        """
        try:
            while written < len(data):
                written += os.pwrite(self._descriptor, memoryview(data)[written:], self.size + written)
        except OSError:
            os.ftruncate(self._descriptor, self.size)
            raise
        self.size += written


class LocalDisk:
    _concurrent_fsync = ConcurrentFsync()

    def open(self, path: Path, *, create: bool = False) -> LocalFile:
        return LocalFile(os.open(path, os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT if create else 0), 0o644))

    def read(self, path: Path) -> bytes:
        return path.read_bytes()

    def write(self, path: Path, data: bytes, *, sync: bool) -> None:
        temporary = path.with_name(f"{path.name}.{os.getpid()}-{get_ident()}-{next(_temporary)}{TEMPORARY}")
        try:
            with temporary.open("wb", buffering=0) as file:
                rest = memoryview(data)
                while rest:
                    rest = rest[file.write(rest) :]
                if sync:
                    datasync(file.fileno())
            temporary.replace(path)
        except OSError:
            with suppress(OSError):
                temporary.unlink()
            raise
        if sync:
            self.sync_folder(path.parent)

    def names(self, folder: Path) -> dict[str, int]:
        found: dict[str, int] = {}
        with os.scandir(folder) as entries:
            for entry in entries:
                with suppress(FileNotFoundError):  # another thread was faster
                    found[entry.name] = entry.stat(follow_symlinks=False).st_size
        return found

    def changed_ms(self, path: Path) -> int:
        return path.stat().st_mtime_ns // 1_000_000

    def set_changed_ms(self, path: Path, changed_ms: int) -> None:
        os.utime(path, ns=(changed_ms * 1_000_000, changed_ms * 1_000_000))

    def make_folder(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)

    def sync_files(self, files: Sequence[File]) -> list[OSError | None]:
        return self._concurrent_fsync.sync([cast("LocalFile", file).descriptor for file in files])  # all opened here

    def sync_folder(self, folder: Path) -> None:
        try:
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except FileNotFoundError:
            raise
        except OSError as error:
            raise NotOpened(error.errno, error.strerror, str(folder)) from None
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def rename(self, old: Path, new: Path) -> None:
        old.rename(new)

    def remove(self, path: Path) -> None:
        if path.is_dir() and not path.is_symlink():
            path.rmdir()
        else:
            path.unlink()


class ReadOnlyDisk(LocalDisk):
    """
    The file system of this machine, for reading only. What the log's own code writes as it opens a file, such as a
    journal without superseded lines, is left out.
    """

    def open(self, path: Path, *, create: bool = False) -> LocalFile:
        return LocalFile(os.open(path, os.O_RDONLY | os.O_CLOEXEC))

    def write(self, path: Path, data: bytes, *, sync: bool) -> None:
        pass

    def make_folder(self, folder: Path) -> None:
        pass

    def sync_folder(self, folder: Path) -> None:
        pass

    def rename(self, old: Path, new: Path) -> None:
        pass

    def remove(self, path: Path) -> None:
        pass


_sync_file_range = getattr(ctypes.CDLL(None), "sync_file_range", None)  # Linux has it; os does not name it
