"""
A segment that tests write.
"""

from pathlib import Path

from kgateway.broker.log.index import OFFSETS, TIMES
from kgateway.broker.log.open_files import OpenFiles
from kgateway.broker.log.segment import Segment, file_name
from kgateway.records.batch import Batch, placed
from tests.broker.behaviour import batch
from tests.broker.log.noted_disk import NotedDisk

BASE = 100
SIZE = len(batch().data)  # of a batch of one record
EVERY = 0  # an entry for each batch but the first


class Fresh:
    """
    A segment without batches, and its files.
    """

    def __init__(self, folder: Path) -> None:
        self.disk = NotedDisk()
        self.files = OpenFiles(self.disk, 9)
        self.folder = folder
        self.segment = Segment(self.files, folder, BASE)
        self.log = self.files.get(self.segment.path, create=True)

    def append(self, *batches: Batch, interval: int = EVERY) -> None:
        for sent in batches:
            offset = self.segment.next_offset
            self.segment.append(placed(sent, offset, 0), sent.header, offset, interval)

    def entries(self, suffix: str) -> list[tuple[int, int]]:
        """
        What the file of an index has.
        """
        data = (self.folder / file_name(BASE, suffix)).read_bytes()
        return list((OFFSETS if suffix == ".index" else TIMES).iter_unpack(data))

    def position(self, offset: int) -> int:
        return self.segment.position_of(self.log.read, offset, self.segment.size)
