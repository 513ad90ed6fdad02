"""
A log with batches in three segments, and who reads it.
"""

from pathlib import Path

from twisted.internet.defer import Deferred

from kgateway.broker.log.partition_log import Limits
from kgateway.broker.log.reading import Reader
from kgateway.broker.log.segment import file_name
from kgateway.broker.log.trust import Trust
from kgateway.cluster.config_rows import LONG_MAX
from kgateway.records.batch import batches
from tests.broker.behaviour import PLENTY, batch, result
from tests.broker.log.making import Threads, log_parts, put, recovered
from tests.broker.log.noted_disk import NotedDisk

SIZE = len(batch().data)


class Filled:
    """
    A log of ten batches of a record, in segments of four, and who reads it.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.disk, self.threads = folder, NotedDisk(), Threads()
        self.open()
        limits = Limits(4 * SIZE, LONG_MAX, 0)
        self.data = [put(self.log, batch(), limits=limits) for _ in range(10)]
        self.log.save_indexes()

    def open(self) -> None:
        """
        As an earlier process has left it.
        """
        self.parts = log_parts(self.disk, self.threads)
        found = recovered(self.parts.files, self.folder, Trust(0, 0, process_only=True))
        self.log, self.faults = found.log, found.faults
        self.reader = Reader(self.log, self.parts, lambda _: None)

    def ask(
        self, offset: int, max_bytes: int = PLENTY, at_least_one: bool = True
    ) -> list[bytes] | Deferred[list[bytes]]:
        return self.reader.read(offset, self.log.end, max_bytes, at_least_one)

    def read(self, offset: int, max_bytes: int = PLENTY, at_least_one: bool = True) -> list[int]:
        """
        The offsets of what is given; that it is what was written is checked.
        """
        data = joined(self.ask(offset, max_bytes, at_least_one))
        offsets = [found.header.base_offset for found in batches(data)]
        assert data == b"".join(self.data[offset] for offset in offsets)
        return offsets

    def damage(self, offset: int, at: int) -> None:
        """
        Change a byte of the batch with this offset.
        """
        path = self.folder / file_name(offset // 4 * 4, ".log")
        data = bytearray(path.read_bytes())
        data[offset % 4 * SIZE + at] ^= 0xFF
        path.write_bytes(data)


def joined(pieces: list[bytes] | Deferred[list[bytes]]) -> bytes:
    found: list[bytes] = result(pieces)
    return b"".join(found)
