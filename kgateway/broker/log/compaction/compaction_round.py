"""
One round of compaction of one partition: reads the part of the log that no round has seen, for the last offset of each
key, and rewrites the log without superseded records.

The helper process does this work (helper_process.py): it takes the processor for long, and touches nothing that anybody
else reads. The gateway puts the result in place (segment_swap.py).
"""

from collections.abc import Container, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Protocol

from kgateway.broker.log.compaction.record_filter import (
    KnownOffsets,
    LastBatch,
    LastOffsets,
    RecordFilter,
    RoundTimes,
    TransactionEnds,
    keys_that_fit,
)
from kgateway.broker.log.compaction.record_reader import RecordReader
from kgateway.broker.log.files.disk import Disk
from kgateway.broker.log.segments.batch_scan import Damage, Damaged, scan
from kgateway.broker.log.segments.cleaned_segment import SegmentWriter
from kgateway.broker.log.segments.file_names import CLEANED_SUFFIX, LOG, file_name
from kgateway.broker.log.segments.index import INDEX, TIME_INDEX
from kgateway.broker.log.segments.segment import OFFSETS_MAX
from kgateway.broker.partition.transactions import ABORTED_INDEX, AbortedTransaction
from kgateway.records.batch import Batch

MEMORY_BYTES = 128 << 20  # as log.cleaner.dedupe.buffer.size


@dataclass(frozen=True, slots=True)
class FullSegment:
    """
    A full segment: its base, the base of the next one, and its size.
    """

    base: int
    end: int
    size: int


@dataclass(frozen=True, slots=True)
class CompactionJob:
    folder: str
    token: str
    segments: list[FullSegment]
    first_dirty: int  # everything before it was seen by earlier rounds
    log_start: int
    now_ms: int
    delete_retention_ms: int
    deletions_stay_from: int  # tombstones from this offset on are kept for ever
    segment_bytes: int
    segment_index_bytes: int
    index_interval_bytes: int
    last_batches: dict[int, LastBatch]  # of each producer that is remembered
    aborted: list[AbortedTransaction]  # that reach into these segments


@dataclass(frozen=True, slots=True)
class RewrittenSegment:
    """
    A segment that is to replace the one with the same base, and those between it and the end.
    """

    base: int
    end: int
    size: int
    aborted: list[AbortedTransaction]  # of which something is left, with the marker here


@dataclass(slots=True)
class CompactionOutcome:
    """
    The result of a round. Segments of which everything was kept are left as they are.
    """

    cleaned_to: int
    rewritten: list[RewrittenSegment] = field(default_factory=list)
    keys: int = 0
    records_seen: int = 0
    records_kept: int = 0
    unreadable: int = 0  # batches


class Reader(Protocol):
    """
    Reads the records of a round, one by one or in columns.
    """

    @property
    def latest(self) -> KnownOffsets: ...

    def note(self, batches: Iterable[Batch], first_dirty: int) -> int | None:
        """
        Remember the keys of batches from this offset on. Returns the offset of the first for which there is no room.
        """

    def left(self, rules: RecordFilter, batches: Iterable[Batch]) -> Iterator[tuple[Batch, Batch | None]]:
        """
        What remains of each batch.
        """


def compact(job: CompactionJob, disk: Disk, memory_bytes: int = MEMORY_BYTES) -> CompactionOutcome:
    """
    Do the job, with this much memory for the offsets of keys. Raises Damaged if the log is damaged: then nothing of
    the partition is touched.
    """
    if find_spec("numpy"):
        from kgateway.broker.log.compaction.column_reader import ColumnReader
        from kgateway.broker.log.compaction.offset_columns import OffsetColumns, Unfit

        try:
            return compact_with(ColumnReader(OffsetColumns(memory_bytes)), job, disk)
        except Unfit:
            _discard(job, disk)
    return compact_with(RecordReader(LastOffsets(keys_that_fit(memory_bytes))), job, disk)


def _discard(job: CompactionJob, disk: Disk) -> None:
    """
    Remove what this round has written.
    """
    folder = Path(job.folder)
    for name in disk.names(folder):
        if name.endswith(f".{job.token}{CLEANED_SUFFIX}"):
            disk.remove(folder / name)


def compact_with(reader: Reader, job: CompactionJob, disk: Disk) -> CompactionOutcome:
    latest = reader.latest
    dirty = [segment for segment in job.segments if segment.end > job.first_dirty]
    latest.end = dirty[-1].end if dirty else job.first_dirty
    full_at = reader.note(_keyed_batches(dirty, job, disk), job.first_dirty)
    latest.end = latest.end if full_at is None else full_at
    times = RoundTimes(job.now_ms, job.delete_retention_ms, job.deletions_stay_from)
    rules = RecordFilter(latest, job.log_start, times, job.last_batches, TransactionEnds(job.aborted))
    outcome = CompactionOutcome(latest.end, keys=len(latest))
    seen = [segment for segment in job.segments if segment.base < latest.end]
    names = disk.names(Path(job.folder))
    for group in _groups(seen, job, names):
        rewritten = _rewrite(group, job, disk, reader, rules, names)
        if rewritten:
            outcome.rewritten.append(rewritten)
    if outcome.rewritten:
        disk.sync_folder(Path(job.folder))
    outcome.records_seen, outcome.records_kept = rules.records_seen, rules.records_kept
    outcome.unreadable = rules.unreadable
    return outcome


def _keyed_batches(segments: Iterable[FullSegment], job: CompactionJob, disk: Disk) -> Iterator[Batch]:
    """
    The dirty batches whose records count as the last of their keys.
    """
    ended = TransactionEnds(job.aborted)
    for segment in segments:
        for batch in _batches(segment, job, disk):
            if batch.header.last_offset >= job.first_dirty and _counts(batch, ended):
                yield batch


def _counts(batch: Batch, ended: TransactionEnds) -> bool:
    if batch.header.is_control:
        ended.marks_nothing(batch)
        return False
    return not ended.is_aborted(batch.header)


def _groups(segments: list[FullSegment], job: CompactionJob, sizes: Mapping[str, int]) -> Iterator[list[FullSegment]]:
    """
    Neighbours that together fit into one segment. If records are missing between two, as after damage, they are kept
    apart.
    """
    group = list[FullSegment]()
    for segment in segments:
        together = [*group, segment]
        if group and (segment.base != group[-1].end or not _fit_into_one(together, job, sizes)):
            yield group
            together = [segment]
        group = together
    if group:
        yield group


def _fit_into_one(group: list[FullSegment], job: CompactionJob, sizes: Mapping[str, int]) -> bool:
    indexes = (sum(sizes.get(file_name(one.base, suffix), 0) for one in group) for suffix in (INDEX, TIME_INDEX))
    is_small = sum(one.size for one in group) <= job.segment_bytes and max(indexes) <= job.segment_index_bytes
    return is_small and group[-1].end - group[0].base <= OFFSETS_MAX


def _rewrite(
    group: list[FullSegment],
    job: CompactionJob,
    disk: Disk,
    reader: Reader,
    rules: RecordFilter,
    names: Container[str],
) -> RewrittenSegment | None:
    folder, base = Path(job.folder), group[0].base
    changed = len(group) > 1
    had_aborted = any(file_name(one.base, ABORTED_INDEX) in names for one in group)
    with closing(SegmentWriter(disk, folder, base, job.token, job.index_interval_bytes)) as rewriting:
        for segment in group:
            for batch, left in reader.left(rules, _batches(segment, job, disk)):
                # A batch without records is replaced by another: that alone is no progress.
                changed = changed or (left is not batch and batch.header.records_count > 0)
                if left:
                    rewriting.keep(left)
                else:
                    rewriting.leave_out(batch.header)
        aborted = rules.ended.taken()
        if not changed:
            rewriting.give_up()
            return None
        if had_aborted:
            rewriting.write_aborted(aborted)
        changed_ms = max(disk.changed_ms(folder / file_name(one.base, LOG)) for one in group)
        return RewrittenSegment(base, group[-1].end, rewriting.end(changed_ms), aborted)


def _batches(segment: FullSegment, job: CompactionJob, disk: Disk) -> Iterator[Batch]:
    path = Path(job.folder) / file_name(segment.base, LOG)
    with closing(disk.open(path)) as file:
        for found in scan(file.read, 0, segment.size, segment.base):
            if isinstance(found, Damage):
                raise Damaged(found.position, f"{path.name}: {found.reason}")
            yield found
