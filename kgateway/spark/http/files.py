"""
Files behind HTTP, on a filer of SeaweedFS or on any server that serves ranges of files and lists folders as it does.

    GET /logs/orders-0/00000000000000000000.log     with Range: bytes=0-4194303
    GET /logs/orders-0/?limit=1000                  with Accept: application/json

A file that is removed while it is read is gone at once, unlike one of this machine.

A page of a folder, as a filer of SeaweedFS sends it:

    {"Path": "/logs", "Entries": [{"FullPath": "/logs/a", "Mode": 432, "FileSize": 100, "chunks": [...]}],
     "LastFileName": "a", "ShouldDisplayLoadMore": true}
"""

import io
import json
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from pathlib import PurePath
from typing import Any, NamedTuple, TypeVar, cast
from urllib.parse import urlencode

from kgateway.spark.http.client import Access, HttpServer, RemoteError, UrlPath

_FOLDER = 1 << 31  # in a mode, as Go has it
_PAGE = 1_000  # entries; a filer's default
_PAGE_BYTES_MAX = 64 << 20
_READ_BYTES = 4 << 20
T = TypeVar("T")


class FolderEntry(NamedTuple):
    name: str
    is_folder: bool
    size: int
    changed_s: int
    first_chunk: str  # distinguishes files of the same name; empty where there is none
    last_chunk: int  # its offset in the file


@dataclass(frozen=True, slots=True)
class Page:
    """
    Some entries of a folder, sorted by name.
    """

    entries: list[FolderEntry]
    is_last: bool


def read_page(data: bytes) -> Page:
    try:
        document = json.loads(data)
        entries = [_listed(entry) for entry in document["Entries"] or ()]
        return Page(entries, not (entries and document["ShouldDisplayLoadMore"]))
    except (TypeError, LookupError, AttributeError, RecursionError) as error:
        raise ValueError(f"it is not a page of a folder: {type(error).__name__} {error}") from None


def _listed(entry: dict[str, Any]) -> FolderEntry:
    chunks = entry.get("chunks") or ()
    return FolderEntry(
        name=entry["FullPath"].rpartition("/")[2],
        is_folder=bool(int(entry["Mode"]) & _FOLDER),
        size=int(entry["FileSize"]),
        changed_s=int(datetime.fromisoformat(entry["Mtime"]).timestamp()),
        first_chunk=str(chunks[0]["file_id"]) if chunks else "",
        last_chunk=int(chunks[-1].get("offset", 0)) if chunks else 0,
    )


class RemoteFiles:
    def __init__(self, origin: str, access: Access) -> None:
        self._server = HttpServer(origin, access)
        self.read_last: UrlPath | None = None  # the file that was read last

    def names(self, folder: PurePath) -> dict[str, int]:
        return {entry.name: entry.size for entry in self.listed(cast(UrlPath, folder))}

    def listed(self, folder: UrlPath) -> list[FolderEntry]:
        """
        The entries of a folder, sorted by name.
        """
        found, after = list[FolderEntry](), ""
        while True:
            query = urlencode({"limit": _PAGE, "lastFileName": after})
            try:
                page = read_page(self._server.page(folder, query, _PAGE_BYTES_MAX))
            except ValueError as error:
                raise RemoteError(f"{folder} is not listed as by a filer: {error}") from error
            found += page.entries
            if page.is_last:
                return found
            if page.entries[-1].name <= after:
                raise RemoteError(
                    f"{folder} is not listed as by a filer: the page after {after} starts again from the beginning"
                )
            after = page.entries[-1].name

    def read(self, path: PurePath) -> bytes:
        found, position = list[bytes](), 0
        while data := self.part(cast(UrlPath, path), position, _READ_BYTES):
            found.append(data)
            position += len(data)
            if len(data) < _READ_BYTES:
                break
        return b"".join(found)

    def part(self, path: UrlPath, position: int, size: int) -> bytes:
        """
        The bytes at a position, fewer at the end of the file.
        """
        self.read_last = path
        return self._server.part(path, position, size)

    def size(self, path: UrlPath) -> int:
        return self._server.size(path)

    def open(self, path: PurePath) -> "RemoteFile":
        return RemoteFile(self._server, cast(UrlPath, path))

    def close(self) -> None:
        self._server.close()


class RemoteFile:
    def __init__(self, server: HttpServer, path: UrlPath) -> None:
        self._server = server
        self._path = path

    def read(self, position: int, size: int) -> bytes:
        return self._server.part(self._path, position, size)

    def close(self) -> None:
        pass  # nothing is open between two reads


class RemoteStream(io.RawIOBase):
    """
    A Python file object for libraries; each read is a request.
    """

    def __init__(self, files: RemoteFiles, path: UrlPath) -> None:
        super().__init__()
        self._files = files
        self._path = path
        self._size = files.size(path)
        self._position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        begin = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        self._position = begin + offset
        return self._position

    def read(self, size: int | None = -1) -> bytes:
        left = max(self._size - self._position, 0)
        data = self._files.part(self._path, self._position, left if size is None or size < 0 else min(size, left))
        self._position += len(data)
        return data

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]  # all that can be written to
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)


def one_ahead(found: Generator[T, None, None]) -> Iterator[T]:
    """
    Yield items while a thread computes the next one. The generator runs only in that thread.
    """
    with ThreadPoolExecutor(1, thread_name_prefix="kgateway-ahead") as thread:
        try:
            coming = thread.submit(next, found, None)
            while (piece := coming.result()) is not None:
                coming = thread.submit(next, found, None)
                yield piece
        finally:
            thread.submit(found.close).result()
