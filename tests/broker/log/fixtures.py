"""
Logs and segments: a log with batches in three segments, a segment to write to, and a log that a process has left.
"""

from collections.abc import Generator
from pathlib import Path

import pytest
from twisted.internet.defer import Deferred

from kgateway.broker.log.files.file_cache import FileCache
from kgateway.broker.log.partition.reader import Reader
from kgateway.broker.log.recovery.recovery import Recovered, Recovery
from kgateway.broker.log.recovery.segment_recovery import KnownGood, Work
from kgateway.broker.log.segments.file_names import file_name
from kgateway.broker.log.segments.index import OFFSETS, TIMES
from kgateway.broker.log.segments.segment import Segment
from kgateway.broker.log.segments.segment_list import SegmentLimits
from kgateway.broker.partition.leader_epochs import EPOCH_FILE
from kgateway.broker.partition.producer_snapshot import encode_snapshot
from kgateway.broker.partition.producer_state import ProducerTable
from kgateway.cluster.config import TopicConfig
from kgateway.cluster.config_rows import LONG_MAX
from kgateway.records.batch import Batch, batches, placed
from tests.broker.behaviour import PLENTY, START_MS, batch, result, sequenced
from tests.broker.log.log_brokers import NOTHING_KNOWN, Threads, log_runtime, put, recovered
from tests.broker.log.recording_disk import RecordingDisk

SIZE = len(batch().data)


class FilledLog:
    """
    A log of ten batches of one record, in segments of four, and its readers.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.disk, self.threads = folder, RecordingDisk(), Threads()
        self.open()
        limits = SegmentLimits(4 * SIZE, LONG_MAX, 0)
        self.data = [put(self.segment_list, batch(), limits=limits) for _ in range(10)]
        self.segment_list.save_indexes()

    def open(self) -> None:
        """
        Open the log as an earlier process has left it.
        """
        self.runtime = log_runtime(self.disk, self.threads)
        found = recovered(self.runtime.files, self.folder, KnownGood(0, 0, nothing_missing=True))
        self.segment_list, self.faults = found.segment_list, found.faults
        self.reader = Reader(self.segment_list, self.runtime, lambda _: None)

    def ask(
        self, offset: int, max_bytes: int = PLENTY, at_least_one: bool = True
    ) -> list[bytes] | Deferred[list[bytes]]:
        return self.reader.read(offset, self.segment_list.end, max_bytes, at_least_one)

    def read(self, offset: int, max_bytes: int = PLENTY, at_least_one: bool = True) -> list[int]:
        """
        Read, check the bytes, and return their offsets.
        """
        data = joined(self.ask(offset, max_bytes, at_least_one))
        offsets = [found.header.base_offset for found in batches(data)]
        assert data == b"".join(self.data[offset] for offset in offsets)
        return offsets

    def damage(self, offset: int, at: int) -> None:
        """
        Change a byte of the batch at this offset.
        """
        path = self.folder / file_name(offset // 4 * 4, ".log")
        data = bytearray(path.read_bytes())
        data[offset % 4 * SIZE + at] ^= 0xFF
        path.write_bytes(data)


def joined(pieces: list[bytes] | Deferred[list[bytes]]) -> bytes:
    found: list[bytes] = result(pieces)
    return b"".join(found)


BASE = 100
EVERY = 0  # an entry for each batch except the first


class FreshSegment:
    """
    A segment without batches, and its files.
    """

    def __init__(self, folder: Path) -> None:
        self.disk = RecordingDisk()
        self.files = FileCache(self.disk, 9)
        self.folder = folder
        self.segment = Segment(self.files, folder, BASE)
        self.log = self.files.get(self.segment.path, create=True)

    def append(self, *batches: Batch, interval: int = EVERY) -> None:
        for sent in batches:
            offset = self.segment.next_offset
            self.segment.append(placed(sent, offset, 0), sent.header, offset, interval)

    def entries(self, suffix: str) -> list[tuple[int, int]]:
        """
        The entries in an index file.
        """
        data = (self.folder / file_name(BASE, suffix)).read_bytes()
        return list((OFFSETS if suffix == ".index" else TIMES).iter_unpack(data))

    def position(self, offset: int) -> int:
        return self.segment.position_of(self.log.read, offset, self.segment.size)


LOG = file_name(0, ".log")
INTERVAL = 2 * SIZE
CONFIG = TopicConfig(index_interval_bytes=INTERVAL)


class LeftLog:
    """
    A log of twelve batches of a producer, one record each, in segments of five, and how the next process opens it.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.disk = RecordingDisk()
        self.files = FileCache(self.disk, 9)
        self.opened = self.open(NOTHING_KNOWN)
        self.limits = SegmentLimits(5 * SIZE, LONG_MAX, INTERVAL)
        for number in range(12):
            self.append(sequenced(number), number // 4)
        self.folder_names = set(self.disk.names(folder))

    def append(self, sent: Batch, epoch: int = 2) -> None:
        offset = self.opened.segment_list.end_offset
        if self.opened.segment_list.is_full_for(sent.header, self.limits):
            self._write_beside()
        put(self.opened.segment_list, sent, epoch=epoch, limits=self.limits)
        self.opened.epochs.assign(epoch, offset)
        self.opened.producers.remember(sent.header, offset, START_MS)

    def settle(self) -> int:
        """
        Update the side files, and return the settled offset.
        """
        self.opened.segment_list.save_indexes()
        return self._write_beside()

    def _write_beside(self) -> int:
        end_offset = self.opened.segment_list.end_offset
        (self.folder / file_name(end_offset, ".snapshot")).write_bytes(encode_snapshot(self.opened.producers))
        (self.folder / EPOCH_FILE).write_bytes(self.opened.epochs.encoded())
        return end_offset

    def open(self, known_good: KnownGood, config: TopicConfig = CONFIG) -> Recovered:
        self.files.close_all()
        self.disk.done.clear()
        self.disk.read_bytes.clear()
        self.files = FileCache(self.disk, 9)
        self.opened = recovered(self.files, self.folder, known_good, config)
        return self.opened

    def recovery(self, known_good: KnownGood) -> Generator[Work | None, None, Recovered]:
        """
        The steps of the recovery, with their work done.
        """
        steps = Recovery(self.files, self.folder, known_good, ProducerTable(), START_MS, 100, CONFIG).run()
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
    The name of the log file with this base offset.
    """
    return file_name(number, ".log")


def after_process(settled: int) -> KnownGood:
    """
    What is known after the death of the process alone.
    """
    return KnownGood(0, settled, nothing_missing=True)


def after_machine(synced: int = 0) -> KnownGood:
    return KnownGood(synced, synced, nothing_missing=False)


EITHER = pytest.mark.parametrize("known_good", [after_process(0), after_machine()], ids=["process", "machine"])
