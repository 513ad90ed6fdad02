"""
A log to compact, without a gateway.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from kgateway.broker.log.compaction.compaction_round import (
    CompactionJob,
    CompactionOutcome,
    FullSegment,
    RewrittenSegment,
    compact_with,
)
from kgateway.broker.log.files.file_cache import FileCache
from kgateway.broker.log.files.local_disk import LocalDisk
from kgateway.broker.log.segments.cleaned_segment import cleaned_name
from kgateway.broker.log.segments.file_names import LOG
from kgateway.broker.log.segments.segment import Segment
from kgateway.broker.log.segments.segment_list import SegmentList
from kgateway.cluster.config_rows import LONG_MAX
from kgateway.records.batch import Batch, batches
from kgateway.records.record import Record, records
from tests.broker.log.compaction.readers import ROOM, MakeReader, in_small_columns
from tests.broker.log.log_brokers import START_MS, put, recovered
from tests.records.values import batch_of

TOKEN = "token"

Row = tuple[bytes | None, bytes | None]


def keyed(*rows: Row | bytes, timestamp: int = START_MS, **options: Any) -> Batch:
    """
    A batch of keys with values; a key without a given value has an arbitrary one.
    """
    pairs = [(row, b"value") if isinstance(row, bytes) else row for row in rows]
    return batch_of([Record(n, timestamp + n, *pair) for n, pair in enumerate(pairs)], **options)


def read(data: bytes) -> list[Record]:
    return [record for batch in batches(data) for record in records(batch)]


class Jobs:
    """
    A partition of a few segments, and the result of their compaction.
    """

    def __init__(self, folder: Path, disk: LocalDisk | None = None, reader: MakeReader = in_small_columns) -> None:
        self.folder = folder
        self.reader = reader
        self.disk = disk or LocalDisk()
        self.files = FileCache(self.disk, 100)
        self.segment_list: SegmentList = recovered(self.files, folder).segment_list

    def write(self, *segments: Iterable[Batch], epoch: int = 0) -> None:
        """
        Write each batch to a full segment of its own.
        """
        for segment in segments:
            for batch in segment:
                put(self.segment_list, batch, epoch=epoch)
            self.segment_list.roll()

    @property
    def full(self) -> list[FullSegment]:
        return [FullSegment(one.base_offset, one.next_offset, one.size) for one in self.segment_list.segments[:-1]]

    def job(self, **changes: Any) -> CompactionJob:
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
        return CompactionJob(**given | changes)

    def compact(self, room: int = ROOM, **changes: Any) -> CompactionOutcome:
        """
        Do the job, with room for this many keys.
        """
        return compact_with(self.reader(room), self.job(**changes), self.disk)

    def data(self, one: RewrittenSegment) -> bytes:
        """
        The rewritten bytes that replace segments.
        """
        data = (self.folder / cleaned_name(one.base, LOG, TOKEN)).read_bytes()
        assert len(data) == one.size
        return data

    def left(self, outcome: CompactionOutcome) -> list[int]:
        """
        The offsets of all records after compaction.
        """
        found = [record.offset for one in outcome.rewritten for record in read(self.data(one))]
        gone = [range(one.base, one.end) for one in outcome.rewritten]
        for segment in self.segment_list.segments[:-1]:
            if not any(segment.base_offset in offsets for offsets in gone):
                found += [record.offset for record in read(segment.path.read_bytes())]
        return sorted(found)

    def fresh(self, one: RewrittenSegment) -> Segment:
        """
        The rewritten segment, opened under its own names.
        """
        for path in self.folder.glob(f"{one.base:020d}.*.{TOKEN}.cleaned"):
            path.rename(path.with_name(path.name.removesuffix(f".{TOKEN}.cleaned")))
        segment = Segment(FileCache(self.disk, 100), self.folder, one.base)
        segment.trust_files(one.size, one.end)
        return segment
