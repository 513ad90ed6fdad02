"""
One round of compaction of one partition: first the part of the log that was not seen yet is read, for the last offset
of each key; then all of it is written anew without what that has made old.

This is the work of a helper process (helper.py): it takes the processor for long, and touches nothing that anybody
else looks at. What comes out is put in place by the gateway (swapping.py).
"""

from collections.abc import Container, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from kgateway.broker.aborted import ABORTED_INDEX, AbortedTransaction
from kgateway.broker.log.compaction.ended import EndedTransactions
from kgateway.broker.log.compaction.latest import LatestOffsets
from kgateway.broker.log.compaction.retaining import LastBatch, Retaining, Times
from kgateway.broker.log.compaction.rewriting import Rewriting
from kgateway.broker.log.disk import Disk
from kgateway.broker.log.segment import LOG, OFFSETS_MAX, file_name
from kgateway.broker.log.segment_indexes import INDEX, TIME_INDEX
from kgateway.broker.log.walking import Damage, Damaged, scan
from kgateway.records.batch import Batch
from kgateway.records.entries import entries
from kgateway.records.payload import payload_of
from kgateway.wire.malformed import Malformed

MEMORY_BYTES = 128 << 20  # as log.cleaner.dedupe.buffer.size


@dataclass(frozen=True, slots=True)
class Full:
    """
    A segment that nobody writes to any more: from an offset to that of the next one.
    """

    base: int
    end: int
    size: int


@dataclass(frozen=True, slots=True)
class Job:
    """
    What is to be done.
    """

    folder: str
    token: str
    segments: list[Full]
    first_dirty: int  # what is before it was seen by earlier rounds
    log_start: int
    now_ms: int
    delete_retention_ms: int
    deletions_stay_from: int  # the offset from which they do for ever
    segment_bytes: int
    segment_index_bytes: int
    index_interval_bytes: int
    last_batches: dict[int, LastBatch]  # of each producer that is remembered
    aborted: list[AbortedTransaction]  # that reach into these segments


@dataclass(frozen=True, slots=True)
class Rewritten:
    """
    A segment that is to take the place of some: of that with the same base, and of those between it and the end.
    """

    base: int
    end: int
    size: int
    aborted: list[AbortedTransaction]  # of which something is left, with the marker here


@dataclass(slots=True)
class Outcome:
    """
    What was done. Segments of which everything stayed are left as they are.
    """

    cleaned_to: int
    rewritten: list[Rewritten] = field(default_factory=list)
    keys: int = 0
    records_seen: int = 0
    records_kept: int = 0
    unreadable: int = 0  # batches


def compact(job: Job, disk: Disk, memory_bytes: int = MEMORY_BYTES) -> Outcome:
    """
    Do it with so much memory for the offsets of keys. Damaged where the log is: then none of this partition is touched.
    """
    latest = _latest(job, disk, LatestOffsets(memory_bytes), EndedTransactions(job.aborted))
    times = Times(job.now_ms, job.delete_retention_ms, job.deletions_stay_from)
    rules = Retaining(latest, job.log_start, times, job.last_batches, EndedTransactions(job.aborted))
    outcome = Outcome(latest.end, keys=len(latest))
    seen = [segment for segment in job.segments if segment.base < latest.end]
    names = disk.names(Path(job.folder))
    for group in _groups(seen, job, names):
        rewritten = _rewrite(group, job, disk, rules, names)
        if rewritten:
            outcome.rewritten.append(rewritten)
    if outcome.rewritten:
        disk.sync_folder(Path(job.folder))
    outcome.records_seen, outcome.records_kept = rules.records_seen, rules.records_kept
    outcome.unreadable = rules.unreadable
    return outcome


def _latest(job: Job, disk: Disk, latest: LatestOffsets, ended: EndedTransactions) -> LatestOffsets:
    latest.end = job.first_dirty
    for segment in job.segments:
        if segment.end <= job.first_dirty:
            continue
        for batch in _batches(segment, job, disk):
            if batch.header.last_offset >= job.first_dirty and _counts(batch, ended):
                full_at = _note(batch, latest, job.first_dirty)
                if full_at is not None:
                    latest.end = full_at
                    return latest
        latest.end = segment.end
    return latest


def _counts(batch: Batch, ended: EndedTransactions) -> bool:
    """
    Whether it has records, and their transaction, if they are of one, was not aborted.
    """
    if batch.header.is_control:
        ended.may_go(batch)
        return False
    return not ended.is_aborted(batch.header)


def _note(batch: Batch, latest: LatestOffsets, first_dirty: int) -> int | None:
    """
    Note the keys of a batch; the offset of the first for which there is no room.
    """
    base, note = batch.header.base_offset, latest.note
    try:
        found = list(entries(payload_of(batch), batch.header.records_count))
    except Malformed:
        return None  # such a batch stays as it is, and takes the place of nothing
    for _, _, delta, key, _ in found:
        offset = base + delta
        if key is not None and offset >= first_dirty and not note(key, offset):
            return offset
    return None


def _groups(segments: list[Full], job: Job, sizes: Mapping[str, int]) -> Iterator[list[Full]]:
    """
    Neighbours that make no more than one segment together, as they are now. Where records are missing between two, as
    after damage, they stay two.
    """
    group = list[Full]()
    for segment in segments:
        together = [*group, segment]
        if group and (segment.base != group[-1].end or not _is_one(together, job, sizes)):
            yield group
            together = [segment]
        group = together
    if group:
        yield group


def _is_one(group: list[Full], job: Job, sizes: Mapping[str, int]) -> bool:
    """
    Whether these may become one segment: by their size, that of each of their indexes, and their offsets.
    """
    indexes = (sum(sizes.get(file_name(one.base, suffix), 0) for one in group) for suffix in (INDEX, TIME_INDEX))
    is_small = sum(one.size for one in group) <= job.segment_bytes and max(indexes) <= job.segment_index_bytes
    return is_small and group[-1].end - group[0].base <= OFFSETS_MAX


def _rewrite(group: list[Full], job: Job, disk: Disk, rules: Retaining, names: Container[str]) -> Rewritten | None:
    folder, base = Path(job.folder), group[0].base
    changed = len(group) > 1
    told_of_aborted = any(file_name(one.base, ABORTED_INDEX) in names for one in group)
    with closing(Rewriting(disk, folder, base, job.token, job.index_interval_bytes)) as rewriting:
        for segment in group:
            for batch in _batches(segment, job, disk):
                left = rules.left_of(batch)
                # A batch without records goes, and one takes its place: that alone is nothing new.
                changed = changed or (left is not batch and batch.header.records_count > 0)
                if left:
                    rewriting.keep(left)
                else:
                    rewriting.leave_out(batch.header)
        aborted = rules.ended.taken()
        if not changed:
            rewriting.give_up()
            return None
        if told_of_aborted:
            rewriting.tell_aborted(aborted)
        changed_ms = max(disk.changed_ms(folder / file_name(one.base, LOG)) for one in group)
        return Rewritten(base, group[-1].end, rewriting.end(changed_ms), aborted)


def _batches(segment: Full, job: Job, disk: Disk) -> Iterator[Batch]:
    path = Path(job.folder) / file_name(segment.base, LOG)
    with closing(disk.open(path)) as file:
        for found in scan(file.read, 0, segment.size, segment.base):
            if isinstance(found, Damage):
                raise Damaged(found.position, f"{path.name}: {found.reason}")
            yield found
