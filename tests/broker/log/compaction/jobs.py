"""
A log to be compacted, without a gateway around it.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from kgateway.broker.log.compaction.cleaning import Full, Job, Outcome, Rewritten, compact
from kgateway.broker.log.compaction.rewriting import cleaned_name
from kgateway.broker.log.local_disk import LocalDisk
from kgateway.broker.log.open_files import OpenFiles
from kgateway.broker.log.partition_log import PartitionLog
from kgateway.broker.log.segment import LOG, Segment
from kgateway.cluster.config_rows import LONG_MAX
from kgateway.records.batch import Batch, batches
from kgateway.records.record import Record, records
from tests.broker.log.making import START_MS, put, recovered
from tests.records.values import batch_of

TOKEN = "token"

Row = tuple[bytes | None, bytes | None]


def keyed(*rows: Row | bytes, timestamp: int = START_MS, **options: Any) -> Batch:
    """
    A batch of keys with values; a key alone has one that is never looked at.
    """
    pairs = [(row, b"value") if isinstance(row, bytes) else row for row in rows]
    return batch_of([Record(n, timestamp + n, *pair) for n, pair in enumerate(pairs)], **options)


def read(data: bytes) -> list[Record]:
    """
    The records of all batches.
    """
    return [record for batch in batches(data) for record in records(batch)]


class Jobs:
    """
    A partition of a few segments, and what compaction makes of it.
    """

    def __init__(self, folder: Path, disk: LocalDisk | None = None) -> None:
        self.folder = folder
        self.disk = disk or LocalDisk()
        self.files = OpenFiles(self.disk, 100)
        self.log: PartitionLog = recovered(self.files, folder).log

    def write(self, *segments: Iterable[Batch], epoch: int = 0) -> None:
        """
        Full segments of these batches.
        """
        for segment in segments:
            for batch in segment:
                put(self.log, batch, epoch=epoch)
            self.log.roll()

    @property
    def full(self) -> list[Full]:
        return [Full(one.base_offset, one.next_offset, one.size) for one in self.log.segments[:-1]]

    def job(self, **changes: Any) -> Job:
        given: dict[str, Any] = {
            "folder": str(self.folder),
            "token": TOKEN,
            "segments": self.full,
            "first_dirty": 0,
            "log_start": 0,
            "now_ms": START_MS,
            "delete_retention_ms": 1_000,
            "deletions_stay_from": LONG_MAX,
            "segment_bytes": 1 << 30,
            "segment_index_bytes": 10 << 20,
            "index_interval_bytes": 4096,
            "last_batches": {},
            "aborted": [],
        }
        return Job(**given | changes)

    def compact(self, memory_bytes: int = 1 << 20, **changes: Any) -> Outcome:
        return compact(self.job(**changes), self.disk, memory_bytes)

    def data(self, one: Rewritten) -> bytes:
        """
        What was written in place of segments.
        """
        data = (self.folder / cleaned_name(one.base, LOG, TOKEN)).read_bytes()
        assert len(data) == one.size
        return data

    def left(self, outcome: Outcome) -> list[int]:
        """
        The offsets of all records there are then.
        """
        found = [record.offset for one in outcome.rewritten for record in read(self.data(one))]
        gone = [range(one.base, one.end) for one in outcome.rewritten]
        for segment in self.log.segments[:-1]:
            if not any(segment.base_offset in offsets for offsets in gone):
                found += [record.offset for record in read(segment.path.read_bytes())]
        return sorted(found)

    def fresh(self, one: Rewritten) -> Segment:
        """
        The rewritten segment under its own names, opened.
        """
        for path in self.folder.glob(f"{one.base:020d}.*.{TOKEN}.cleaned"):
            path.rename(path.with_name(path.name.removesuffix(f".{TOKEN}.cleaned")))
        segment = Segment(OpenFiles(self.disk, 100), self.folder, one.base)
        segment.take_over(one.size, one.end)
        return segment
