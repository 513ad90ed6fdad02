"""
Archives in a filer of SeaweedFS: read by HTTP, written by HTTP and gRPC.

The bytes of a file are uploaded to volumes first. Then one entry with all of them is created, if the name is free. So a
job that is killed leaves no visible part of a file, but perhaps bytes that SeaweedFS's `volume.fsck` finds.
"""

import errno
import os
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import cache
from pathlib import PurePath
from typing import IO, Any, cast
from urllib.parse import urlsplit

import pyarrow as pa

from kgateway.broker.seaweed.calls.addresses import ServerAddress
from kgateway.broker.seaweed.filer.content import UploadedChunk
from kgateway.broker.seaweed.protos.filer_pb2 import Entry, FuseAttributes
from kgateway.spark.http.client import Access, RemoteError, UrlPath
from kgateway.spark.http.files import FolderEntry, RemoteFiles, RemoteStream
from kgateway.spark.seaweed.filer import WritableFiler

_CHUNK_BYTES = 8 << 20
_MODE = 0o644
_ATTEMPTS = 5  # to create or rename an entry while answers are lost


class FilerStore:
    def __init__(self, origin: str, access: Access) -> None:
        self._origin = origin
        self._access = access
        self._files = RemoteFiles(origin, access)
        self._writing: WritableFiler | None = None

    def __reduce__(self) -> tuple[Callable[..., "FilerStore"], tuple[str, Access]]:
        return filer_store, (self._origin, self._access)

    @property
    def filer(self) -> WritableFiler:
        if self._writing is None:
            self._writing = WritableFiler(_address(self._origin), self._access.security_file)
        return self._writing

    def names(self, folder: PurePath) -> list[str]:
        return [entry.name for entry in self._listed(folder)]

    def folders(self, folder: PurePath) -> list[str]:
        return [entry.name for entry in self._listed(folder) if entry.is_folder]

    def _listed(self, folder: PurePath) -> list[FolderEntry]:
        try:
            return self._files.listed(cast(UrlPath, folder))
        except FileNotFoundError:
            return []

    def has(self, path: PurePath) -> bool:
        try:
            self._files.size(cast(UrlPath, path))
        except FileNotFoundError:
            return False
        return True

    def open(self, path: PurePath) -> pa.NativeFile:
        return pa.PythonFile(RemoteStream(self._files, cast(UrlPath, path)), "r")

    def make(self, folder: PurePath) -> "FilerNewFile":
        return FilerNewFile(self, cast(UrlPath, folder))

    def move(self, source: PurePath, target: PurePath) -> None:
        """
        The filer renames atomically, so that a late job cannot bring back what others have removed meanwhile.
        """
        for left in reversed(range(_ATTEMPTS)):
            try:
                self.filer.ask(lambda filer: filer.rename(_path(source), _path(target)))
                return
            except RemoteError:
                if not self._is_there(source):
                    break
                if not left:
                    raise
        if not self._is_there(target):  # the answer was lost, or another job has moved it
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(source))

    def remove(self, path: PurePath) -> None:
        self.filer.ask(lambda filer: filer.delete(_path(path)))

    def remove_folder(self, folder: PurePath) -> None:
        self.filer.ask(lambda filer: filer.delete(_path(folder), recursive=True))

    def sync(self, folder: PurePath) -> None:
        pass  # the filer answers when it has stored an entry

    def create(self, path: UrlPath, source: IO[bytes]) -> None:
        """
        Create a file with these bytes; FileExistsError if the name is taken.
        """
        uploaded = list[UploadedChunk]()
        try:
            self._upload(_path(path), source, uploaded)
        except BaseException:
            self._forget(uploaded)
            raise
        if not self._create(_path(path), _entry(uploaded)):
            self._forget(uploaded)
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))

    def _upload(self, name: str, source: IO[bytes], uploaded: list[UploadedChunk]) -> None:
        size = 0
        while data := source.read(_CHUNK_BYTES):
            found = self.filer.ask(lambda filer, data=data: filer.volumes.upload(name, data))  # type: ignore[misc]
            found.chunk.offset = size
            uploaded.append(found)
            size += len(data)

    def _forget(self, uploaded: Iterable[UploadedChunk]) -> None:
        for one in uploaded:
            with suppress(RemoteError):  # an unused chunk takes space, and does no other harm
                self.filer.ask(lambda filer, one=one: filer.volumes.remove(one))  # type: ignore[misc]

    def _is_there(self, path: PurePath) -> bool:
        return self.filer.ask(lambda filer: filer.entry(_path(path))) is not None

    def _create(self, name: str, entry: Entry) -> bool:
        """
        Create an entry; returns False if the name is taken. If the answer is lost, the chunks of the entry tell whose
        it is.
        """
        for attempt in range(_ATTEMPTS):
            unclear: RemoteError | None = None
            try:
                if self.filer.ask(lambda filer: filer.create(name, entry, only_if_absent=True)):
                    return True
            except RemoteError as error:
                unclear = error
            found = self.filer.ask(lambda filer: filer.entry(name))
            if found is not None:
                return _places(found) == _places(entry)
            if unclear and attempt == _ATTEMPTS - 1:
                raise unclear
        return False


class FilerNewFile:
    """
    A file that is buffered on this machine until it is complete.
    """

    def __init__(self, store: FilerStore, folder: UrlPath) -> None:
        self._store = store
        self._folder = folder
        self._file = tempfile.TemporaryFile()  # noqa: SIM115, `discard` closes it

    def write(self, data: Any) -> int:
        return self._file.write(data)

    def finish(self, name: str) -> None:
        self._file.seek(0)
        self._store.create(self._folder / name, self._file)

    def discard(self) -> None:
        self._file.close()


@cache
def filer_store(origin: str, access: Access) -> FilerStore:
    """
    The filer's store, shared by the whole process.
    """
    return FilerStore(origin, access)


def _entry(uploaded: Sequence[UploadedChunk]) -> Entry:
    size, now = sum(one.chunk.size for one in uploaded), int(time.time())
    attributes = FuseAttributes(file_size=size, file_mode=_MODE, mtime=now, crtime=now)
    return Entry(chunks=[one.chunk for one in uploaded], attributes=attributes)


def _places(entry: Entry) -> list[tuple[str, int]]:
    return [(chunk.file_id or f"{chunk.fid.volume_id},{chunk.fid.file_key}", chunk.offset) for chunk in entry.chunks]


def _path(path: PurePath) -> str:
    return "/" + "/".join(path.parts[2:])  # behind the scheme and the server


def _address(origin: str) -> ServerAddress:
    return ServerAddress.parse(urlsplit(origin).netloc)
