"""
Archives in a filer of SeaweedFS: read by HTTP, written by HTTP and gRPC.

The bytes of a file go to volumes first, of which nobody knows. Then one entry with all of them is created, if nothing
has that name. So a job that is killed leaves no part of a file that could be seen, but perhaps bytes that SeaweedFS's
`volume.fsck` finds.
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

from kgateway.broker.seaweed.addresses import ServerAddress
from kgateway.broker.seaweed.protos.filer_pb2 import Entry, FuseAttributes
from kgateway.broker.seaweed.volumes import Uploaded
from kgateway.spark.filer.waiting import WaitingFiler
from kgateway.spark.remote_access import Access
from kgateway.spark.remote_files import RemoteFiles
from kgateway.spark.remote_http import RemoteError
from kgateway.spark.remote_listing import Listed
from kgateway.spark.remote_paths import UrlPath
from kgateway.spark.remote_stream import RemoteStream

_CHUNK_BYTES = 8 << 20
_MODE = 0o644
_ATTEMPTS = 5  # to create or rename an entry, where it is not known what became of it


class FilerStore:
    """
    A filer.
    """

    def __init__(self, origin: str, access: Access) -> None:
        self._origin = origin
        self._access = access
        self._files = RemoteFiles(origin, access)
        self._writing: WaitingFiler | None = None

    def __reduce__(self) -> tuple[Callable[..., "FilerStore"], tuple[str, Access]]:
        return filer_store, (self._origin, self._access)

    @property
    def filer(self) -> WaitingFiler:
        """
        The filer as it is written to.
        """
        if self._writing is None:
            self._writing = WaitingFiler(_address(self._origin), self._access.security_file)
        return self._writing

    def names(self, folder: PurePath) -> list[str]:
        return [entry.name for entry in self._listed(folder)]

    def folders(self, folder: PurePath) -> list[str]:
        return [entry.name for entry in self._listed(folder) if entry.is_folder]

    def _listed(self, folder: PurePath) -> list[Listed]:
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

    def make(self, folder: PurePath) -> "FilerMaking":
        return FilerMaking(self, cast(UrlPath, folder))

    def move(self, source: PurePath, target: PurePath) -> None:
        """
        The filer does that at once, so that nobody who comes late brings back what others have removed meanwhile.
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
        if not self._is_there(target):  # it is where the answer was lost, or another was faster
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(source))

    def remove(self, path: PurePath) -> None:
        self.filer.ask(lambda filer: filer.delete(_path(path)))

    def remove_folder(self, folder: PurePath) -> None:
        self.filer.ask(lambda filer: filer.delete(_path(folder), recursive=True))

    def settle(self, folder: PurePath) -> None:
        pass  # who creates an entry is answered when the filer has it

    def create(self, path: UrlPath, source: IO[bytes]) -> None:
        """
        Have a file with these bytes. FileExistsError where something has that name.
        """
        uploaded = list[Uploaded]()
        try:
            self._upload(_path(path), source, uploaded)
        except BaseException:
            self._forget(uploaded)
            raise
        if not self._create(_path(path), _entry(uploaded)):
            self._forget(uploaded)
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))

    def _upload(self, name: str, source: IO[bytes], uploaded: list[Uploaded]) -> None:
        size = 0
        while data := source.read(_CHUNK_BYTES):
            found = self.filer.ask(lambda filer, data=data: filer.volumes.upload(name, data))  # type: ignore[misc]
            found.chunk.offset = size
            uploaded.append(found)
            size += len(data)

    def _forget(self, uploaded: Iterable[Uploaded]) -> None:
        for one in uploaded:
            with suppress(RemoteError):  # it takes space, and nothing else
                self.filer.ask(lambda filer, one=one: filer.volumes.remove(one))  # type: ignore[misc]

    def _is_there(self, path: PurePath) -> bool:
        return self.filer.ask(lambda filer: filer.entry(_path(path))) is not None

    def _create(self, name: str, entry: Entry) -> bool:
        """
        Whether the entry is there now. Where the answer is lost it is asked for what is there: the bytes show whose it
        is.
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


class FilerMaking:
    """
    It is in a file of this machine until all of it is there.
    """

    def __init__(self, store: FilerStore, folder: UrlPath) -> None:
        self._store = store
        self._folder = folder
        self._file = tempfile.TemporaryFile()  # noqa: SIM115, `give_up` closes it

    def write(self, data: Any) -> int:
        return self._file.write(data)

    def name(self, name: str) -> None:
        self._file.seek(0)
        self._store.create(self._folder / name, self._file)

    def give_up(self) -> None:
        self._file.close()


@cache
def filer_store(origin: str, access: Access) -> FilerStore:
    """
    The filer that is there, one for all of a process.
    """
    return FilerStore(origin, access)


def _entry(uploaded: Sequence[Uploaded]) -> Entry:
    size, now = sum(one.chunk.size for one in uploaded), int(time.time())
    attributes = FuseAttributes(file_size=size, file_mode=_MODE, mtime=now, crtime=now)
    return Entry(chunks=[one.chunk for one in uploaded], attributes=attributes)


def _places(entry: Entry) -> list[tuple[str, int]]:
    return [(chunk.file_id or f"{chunk.fid.volume_id},{chunk.fid.file_key}", chunk.offset) for chunk in entry.chunks]


def _path(path: PurePath) -> str:
    return "/" + "/".join(path.parts[2:])  # behind the scheme and the server


def _address(origin: str) -> ServerAddress:
    return ServerAddress.parse(urlsplit(origin).netloc)
