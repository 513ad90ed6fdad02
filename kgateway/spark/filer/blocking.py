"""
A filer for who waits for each answer, in the shape in which the gateway's own readers of log files ask one. So there is
one reader of what SeaweedMQ writes; here its coroutines run to their ends at once, and no reactor has to be there.
"""

from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, TypeVar, cast

from kgateway.broker.seaweed.filer_files import NotThere
from kgateway.broker.seaweed.protos.filer_pb2 import Entry, FileChunk, FuseAttributes
from kgateway.broker.seaweed.seaweed import Seaweed
from kgateway.spark.remote_files import RemoteFiles
from kgateway.spark.remote_listing import Listed
from kgateway.spark.remote_paths import UrlPath

T = TypeVar("T")


def result_of(coroutine: Coroutine[Any, Any, T]) -> T:
    """
    What a coroutine ends with that never has to wait.
    """
    try:
        coroutine.send(None)
    except StopIteration as end:
        return cast(T, end.value)
    coroutine.close()
    raise AssertionError(f"{coroutine} waits, and nobody would wake it")


def blocking(files: RemoteFiles, root: UrlPath) -> Seaweed:
    """
    What a cluster is to those who only look at its filer.
    """
    return cast(Seaweed, _Cluster(_Filer(files, root)))


class _Cluster:
    def __init__(self, filer: "_Filer") -> None:
        self._filer = filer

    async def filer(self) -> "_Filer":
        return self._filer


class _Filer:
    """
    By HTTP alone.
    """

    def __init__(self, files: RemoteFiles, root: UrlPath) -> None:
        self.files = _Bytes(files, root)
        self._files = files
        self._root = root

    async def entry(self, path: str) -> Entry | None:
        """
        A small file.
        """
        with suppress(FileNotFoundError):
            return Entry(content=self._files.read(_at(self._root, path)))
        return None

    async def content(self, path: str) -> bytes | None:
        """
        The bytes of a small file; `None` where there is no file.
        """
        with suppress(FileNotFoundError):
            return self._files.read(_at(self._root, path))
        return None

    async def content_of(self, path: str, entry: Entry) -> bytes:
        """
        The same, of an entry that was found.
        """
        return entry.content or self._files.read(_at(self._root, path))

    async def all_entries(self, directory: str) -> list[Entry]:
        """
        What is in a folder; nothing where there is none.
        """
        with suppress(FileNotFoundError):
            return [_entry(listed) for listed in self._files.listed(_at(self._root, directory))]
        return []


class _Bytes:
    """
    Those of large files.
    """

    def __init__(self, files: RemoteFiles, root: UrlPath) -> None:
        self._files = files
        self._root = root

    async def read(self, path: str, start: int, stop: int) -> bytes:
        """
        The bytes from the one place to the other, or to the end of the file where that comes before.
        """
        try:
            return self._files.part(_at(self._root, path), start, stop - start)
        except FileNotFoundError:
            raise NotThere(path, "HTTP 404") from None


def _at(root: UrlPath, path: str) -> UrlPath:
    return root / path.strip("/")


def _entry(listed: Listed) -> Entry:
    first, last = FileChunk(file_id=listed.first_chunk), FileChunk(offset=listed.last_chunk)
    return Entry(
        name=listed.name,
        is_directory=listed.is_folder,
        attributes=FuseAttributes(file_size=listed.size, mtime=listed.changed_s),
        chunks=[first, last] if listed.first_chunk else [],
    )
