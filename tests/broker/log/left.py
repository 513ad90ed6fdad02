"""
A log that a process has left, and how the next one opens it.
"""

from collections.abc import Generator
from pathlib import Path

import pytest

from kgateway.broker import producer_snapshots
from kgateway.broker.epochs import EPOCH_FILE
from kgateway.broker.log.looking_through import Work
from kgateway.broker.log.open_files import OpenFiles
from kgateway.broker.log.partition_log import Limits
from kgateway.broker.log.recovery import Recovered, Recovery
from kgateway.broker.log.segment import file_name
from kgateway.broker.log.trust import Trust
from kgateway.broker.producers import ProducerTable
from kgateway.cluster.config import TopicConfig
from kgateway.cluster.config_rows import LONG_MAX
from kgateway.records.batch import Batch
from tests.broker.behaviour import START_MS, batch, sequenced
from tests.broker.log.making import NOTHING_KNOWN, put, recovered
from tests.broker.log.noted_disk import NotedDisk

SIZE = len(batch().data)
LOG = file_name(0, ".log")
INTERVAL = 2 * SIZE
CONFIG = TopicConfig(index_interval_bytes=INTERVAL)


class Left:
    """
    A log of twelve batches of a producer, a record each, in segments of five; and how the next process opens it.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.disk = NotedDisk()
        self.files = OpenFiles(self.disk, 9)
        self.opened = self.open(NOTHING_KNOWN)
        self.limits = Limits(5 * SIZE, LONG_MAX, INTERVAL)
        for number in range(12):
            self.append(sequenced(number), number // 4)
        self.folder_names = set(self.disk.names(folder))

    def append(self, sent: Batch, epoch: int = 2) -> None:
        offset = self.opened.log.end_offset
        if self.opened.log.is_full_for(sent.header, self.limits):
            self._write_beside()
        put(self.opened.log, sent, epoch=epoch, limits=self.limits)
        self.opened.epochs.assign(epoch, offset)
        self.opened.producers.remember(sent.header, offset, START_MS)

    def settle(self) -> int:
        """
        Bring the files beside up to date; the offset that checkpoints tell.
        """
        self.opened.log.save_indexes()
        return self._write_beside()

    def _write_beside(self) -> int:
        end_offset = self.opened.log.end_offset
        (self.folder / file_name(end_offset, ".snapshot")).write_bytes(
            producer_snapshots.written(self.opened.producers)
        )
        (self.folder / EPOCH_FILE).write_bytes(self.opened.epochs.written())
        return end_offset

    def open(self, trust: Trust, config: TopicConfig = CONFIG) -> Recovered:
        """
        As another process does.
        """
        self.files.close_all()
        self.disk.done.clear()
        self.disk.read_bytes.clear()
        self.files = OpenFiles(self.disk, 9)
        self.opened = recovered(self.files, self.folder, trust, config)
        return self.opened

    def recovery(self, trust: Trust) -> Generator[Work | None, None, Recovered]:
        """
        The steps of that, one by one; what they give away is done.
        """
        steps = Recovery(self.files, self.folder, trust, ProducerTable(), START_MS, 100, CONFIG).run()
        for work in steps:
            if work:
                work()
            yield work
        return self.opened

    def change(self, at: int, name: str = LOG, by: int = 0xFF) -> None:
        path = self.folder / name
        data = bytearray(path.read_bytes())
        data[at] ^= by
        path.write_bytes(data)

    def cut(self, size: int, name: str = LOG) -> None:
        path = self.folder / name
        path.write_bytes(path.read_bytes()[:size])


def nth(number: int) -> str:
    """
    The log file that begins with this offset.
    """
    return file_name(number, ".log")


def after_process(settled: int) -> Trust:
    """
    Only the process has died.
    """
    return Trust(0, settled, process_only=True)


def after_machine(synced: int = 0) -> Trust:
    return Trust(synced, synced, process_only=False)


EITHER = pytest.mark.parametrize("trust", [after_process(0), after_machine()], ids=["process", "machine"])
