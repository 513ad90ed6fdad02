"""
A filer in memory, with as much as log files and side files need.
"""

from collections.abc import Iterable

from kgateway.broker.seaweed.calls.retries import Precondition, no_precondition
from kgateway.broker.seaweed.filer.content import FileNotFound
from kgateway.broker.seaweed.protos.filer_pb2 import Entry, FileChunk, FuseAttributes


class MemoryFiler:
    """
    A cluster, its filer, and the contents of its files.
    """

    def __init__(self) -> None:
        self.chunks: dict[str, list[tuple[str, bytes]]] = {}  # by path: ids and bytes
        self._written = 0

    async def filer(self) -> "MemoryFiler":
        return self

    @property
    def files(self) -> "MemoryFiler":
        return self

    async def all_entries(self, folder: str) -> list[Entry]:
        paths = sorted(path for path in self.chunks if path.rpartition("/")[0] == folder)
        return [_entry(path, self.chunks[path]) for path in paths]

    async def read(self, path: str, start: int, stop: int, timeout_s: float = 0.0) -> bytes:
        if path not in self.chunks:
            raise FileNotFound(path, "it is not there")
        return self.content(path)[start:stop]

    async def put(self, path: str, data: bytes, precondition: Precondition = no_precondition) -> None:
        self.chunks.pop(path, None)
        self.append(path, data)

    write = put

    async def entry(self, path: str) -> Entry | None:
        if path not in self.chunks:
            return None
        entry = _entry(path, self.chunks[path])
        entry.content = self.content(path)
        return entry

    async def update(self, path: str, entry: Entry) -> None:
        pass  # only what a broker reads is changed

    async def content_of(self, path: str, entry: Entry) -> bytes:
        return self.content(path)

    def append(self, path: str, data: bytes) -> None:
        self._written += 1
        self.chunks.setdefault(path, []).append((f"1,{self._written:x}", data))

    def content(self, path: str) -> bytes:
        return b"".join(data for _, data in self.chunks[path])

    def delete(self, path: str) -> None:
        self.chunks.pop(path, None)


def _entry(path: str, chunks: Iterable[tuple[str, bytes]]) -> Entry:
    entry, size = Entry(name=path.rpartition("/")[2]), 0
    for file_id, data in chunks:
        entry.chunks.append(FileChunk(file_id=file_id, offset=size, size=len(data)))
        size += len(data)
    entry.attributes.CopyFrom(FuseAttributes(file_size=size))
    return entry
