"""
Files behind HTTP, on a filer of SeaweedFS or on any server that answers ranges of files and lists folders as it does.

    GET /logs/orders-0/00000000000000000000.log     with Range: bytes=0-4194303
    GET /logs/orders-0/?limit=1000                  with Accept: application/json

A file that is removed while it is read is gone at once, unlike one of this machine.
"""

from pathlib import PurePath
from typing import cast
from urllib.parse import urlencode

from kgateway.spark.remote_access import Access
from kgateway.spark.remote_http import HttpServer, RemoteError
from kgateway.spark.remote_listing import Listed, read_page
from kgateway.spark.remote_paths import UrlPath

_PAGE = 1_000  # entries, as many as a filer gives if nobody has set it
_PAGE_BYTES_MAX = 64 << 20
_READ_BYTES = 4 << 20


class RemoteFiles:
    """
    Those of one server.
    """

    def __init__(self, origin: str, access: Access) -> None:
        self._server = HttpServer(origin, access)
        self.read_last: UrlPath | None = None  # where the bytes are that came last

    def names(self, folder: PurePath) -> dict[str, int]:
        return {entry.name: entry.size for entry in self.listed(cast(UrlPath, folder))}

    def listed(self, folder: UrlPath) -> list[Listed]:
        """
        What is in a folder, in the order of names.
        """
        found, after = list[Listed](), ""
        while True:
            query = urlencode({"limit": _PAGE, "lastFileName": after})
            try:
                page = read_page(self._server.page(folder, query, _PAGE_BYTES_MAX))
            except ValueError as error:
                raise RemoteError(f"{folder} is not listed as a filer does: {error}") from error
            found += page.entries
            if page.is_last:
                return found
            if page.entries[-1].name <= after:
                raise RemoteError(f"{folder} is not listed as a filer does: what follows {after} begins anew")
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
        The bytes there, fewer at the end of the file.
        """
        self.read_last = path
        return self._server.part(path, position, size)

    def size(self, path: UrlPath) -> int:
        """
        How many bytes a file has.
        """
        return self._server.size(path)

    def open(self, path: PurePath) -> "RemoteFile":
        return RemoteFile(self._server, cast(UrlPath, path))

    def close(self) -> None:
        """
        End the connection.
        """
        self._server.close()


class RemoteFile:
    """
    A file that is read here and there.
    """

    def __init__(self, server: HttpServer, path: UrlPath) -> None:
        self._server = server
        self._path = path

    def read(self, position: int, size: int) -> bytes:
        return self._server.part(self._path, position, size)

    def close(self) -> None:
        pass  # nothing is open between two reads
