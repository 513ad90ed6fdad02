"""
A filer of SeaweedFS, asked synchronously.

Reading needs HTTP alone. `blocking` makes a filer for the gateway's own readers of log files, so that there is one
reader of what SeaweedMQ writes; their coroutines never wait here, and no reactor runs.

Writing needs gRPC: `WaitingFiler` uses the gateway's client of SeaweedFS, whose reactor runs in a thread, one for all
of a process.
"""

from collections.abc import Callable, Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar, cast

from twisted.internet.defer import Deferred

from kgateway.broker.seaweed.calls.addresses import ServerAddress
from kgateway.broker.seaweed.calls.retries import FilerRefused
from kgateway.broker.seaweed.cluster import SeaweedCluster
from kgateway.broker.seaweed.filer.content import FileNotFound
from kgateway.broker.seaweed.filer.filer import Filer
from kgateway.broker.seaweed.grpc.status import RpcError
from kgateway.broker.seaweed.protos.filer_pb2 import Entry, FileChunk, FuseAttributes
from kgateway.broker.seaweed.reactor_thread import result_of as asked_in_reactor
from kgateway.broker.seaweed.reactor_thread import threaded_reactor
from kgateway.broker.seaweed.security.cluster_security import TomlSecurity
from kgateway.broker.seaweed.security.security_toml import BadSecurity, SecurityFile
from kgateway.spark.errors import WrongOption
from kgateway.spark.http.client import RemoteError, UrlPath
from kgateway.spark.http.files import FolderEntry, RemoteFiles

T = TypeVar("T")


def result_of(coroutine: Coroutine[Any, Any, T]) -> T:
    """
    The result of a coroutine that never waits.
    """
    try:
        coroutine.send(None)
    except StopIteration as end:
        return cast(T, end.value)
    coroutine.close()
    raise AssertionError(f"{coroutine} waits, and nobody would wake it")


def readable_cluster(files: RemoteFiles, root: UrlPath) -> SeaweedCluster:
    """
    A cluster whose filer alone is available, and only for stored files.
    """
    return cast(SeaweedCluster, _ReadableFiler(files, root))


class _ReadableFiler:
    """
    The cluster, its filer and the filer's files in one.
    """

    def __init__(self, files: RemoteFiles, root: UrlPath) -> None:
        self.files = self
        self._remote = files
        self._root = root

    async def filer(self) -> "_ReadableFiler":
        return self

    async def entry(self, path: str) -> Entry | None:
        content = await self.content(path)
        return None if content is None else Entry(content=content)

    async def content(self, path: str) -> bytes | None:
        with suppress(FileNotFoundError):
            return self._remote.read(self._at(path))
        return None

    async def content_of(self, path: str, entry: Entry) -> bytes:
        return entry.content or self._remote.read(self._at(path))

    async def all_entries(self, directory: str) -> list[Entry]:
        with suppress(FileNotFoundError):
            return [_entry(listed) for listed in self._remote.listed(self._at(directory))]
        return []

    async def read(self, path: str, start: int, stop: int) -> bytes:
        try:
            return self._remote.part(self._at(path), start, stop - start)
        except FileNotFoundError:
            raise FileNotFound(path, "HTTP 404") from None

    def _at(self, path: str) -> UrlPath:
        return self._root / path.strip("/")


def _entry(listed: FolderEntry) -> Entry:
    first, last = FileChunk(file_id=listed.first_chunk), FileChunk(offset=listed.last_chunk)
    return Entry(
        name=listed.name,
        is_directory=listed.is_folder,
        attributes=FuseAttributes(file_size=listed.size, mtime=listed.changed_s),
        chunks=[first, last] if listed.first_chunk else [],
    )


class WritableFiler:
    """
    A filer. Its refusals, and answers that take too long, are RemoteErrors.
    """

    def __init__(self, address: ServerAddress, security_file: str) -> None:
        try:
            security = (
                TomlSecurity(SecurityFile(Path(security_file)), clock=threaded_reactor()) if security_file else None
            )
            self._filer = SeaweedCluster([], threaded_reactor(), security=security).filer_at(address)
        except BadSecurity as error:
            raise WrongOption(str(error)) from error

    def ask(self, question: Callable[[Filer], Deferred[T]]) -> T:
        try:
            return asked_in_reactor(lambda: question(self._filer))
        except RpcError as error:
            raise RemoteError(f"the filer {self._filer.address} cannot be reached by gRPC: {error.message}") from error
        except FilerRefused as error:
            raise RemoteError(f"the filer {self._filer.address} refuses: {error}") from error
