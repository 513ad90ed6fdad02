"""
Opens the log of a partition as the last process, or the last crash, has left it.

Everything below the settled offset is believed: its indexes are there, its producers are in a snapshot. Everything
after it is read batch by batch and checked: indexes, producers and leader epochs are rebuilt from it.

Damage that no good batch follows ends the log. If good batches follow, it depends on whether records can be missing:

 - They cannot after a crash of the process, nor below the recovery point after a crash of the machine. There the damage
   is skipped and stays in the file.
 - Above the recovery point they may be missing anywhere after a crash of the machine. There the first damage ends the
   log; the rest would be no prefix of what was written.

A batch with only a wrong offset or leader epoch is complete, and is skipped wherever it stands.

What is cut off is kept beside the segment in a file of its own, `....log.cut-POSITION`, unless it is the beginning of
the one batch that was being written.

Recovery is a generator, because a large log takes seconds: between two steps others run, and work that waits for the
disk is yielded, to be done in a thread before the next step.
"""

from collections.abc import Generator
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from pathlib import Path

from kgateway.broker.log.files.file_cache import FileCache
from kgateway.broker.log.recovery.folder_contents import FolderContents
from kgateway.broker.log.recovery.full_segment import end_by_indexes
from kgateway.broker.log.recovery.segment_recovery import KnownGood, SegmentRecovery, Work
from kgateway.broker.log.recovery.truncation import Truncation, plan_setting_aside
from kgateway.broker.log.recovery.unsynced_parts import sync_parts, unsynced_parts
from kgateway.broker.log.segments.file_names import LOG, file_name
from kgateway.broker.log.segments.fsync import UnsyncedPart
from kgateway.broker.log.segments.index import INDEX, TIME_INDEX
from kgateway.broker.log.segments.segment import Segment
from kgateway.broker.log.segments.segment_list import SegmentList
from kgateway.broker.log.segments.segment_swap import finish_swap
from kgateway.broker.log.segments.side_files import save_aborted
from kgateway.broker.partition.leader_epochs import LeaderEpochs
from kgateway.broker.partition.producer_snapshot import SNAPSHOT, encode_snapshot
from kgateway.broker.partition.producer_state import ProducerTable
from kgateway.cluster.config import TopicConfig
from kgateway.cluster.partition import EARLIEST_OFFSET, NO_EPOCH
from kgateway.records.batch import Batch
from kgateway.records.batch_rewrite import is_hole
from kgateway.wire.errors import Malformed

Steps = Generator[Work | None, None, None]

_SEGMENTS_AT_ONCE = 8  # whose ends are read on the reactor


@dataclass(slots=True)
class Recovered:
    """
    A log that is ready for appends, and the faults found in it.
    """

    segment_list: SegmentList
    log_start: int
    producers: ProducerTable
    epochs: LeaderEpochs
    synced: int  # everything before it is synced
    unsynced: list[UnsyncedPart]  # to be written again before they are synced (unsynced_parts.py)
    clean: bool  # everything is synced, side files too
    snapshot: int  # the offset of the producer snapshot; without one the earliest
    epochs_unknown: range  # offsets whose leader epoch is in no file, only in their batches
    ends_in_gap: bool  # the last offsets are missing
    left_over: list[Path]  # files that are to be removed
    faults: list[str] = field(default_factory=list)


class Recovery:
    def __init__(
        self,
        files: FileCache,
        folder: Path,
        known_good: KnownGood,
        producers: ProducerTable,
        now_ms: int,
        leader_epoch: int,
        config: TopicConfig,
    ) -> None:
        self._files = files
        self._folder = folder
        self._contents: FolderContents
        self._known_good = known_good
        self._producers = producers
        self._leader_epoch = leader_epoch  # the one that begins now
        self._now_ms = now_ms
        self._interval = config.index_interval_bytes
        self._must_sync = config.acks_fsync  # everything recovered can be read at once, so it is synced before
        self._epochs = LeaderEpochs()
        self._faults: list[str] = []
        self._epochs_known = False
        self._endings: dict[
            int, int | None
        ] = {}  # by base, the end offset of a full segment; `None`: indexes are wrong
        self._smaller_epoch = NO_EPOCH  # the last batch's epoch, if it was smaller than one before
        self._trusted_end = EARLIEST_OFFSET  # side files are believed up to here
        self._snapshot_offset = EARLIEST_OFFSET  # the producers are known up to here

    def run(self) -> Generator[Work | None, None, Recovered]:
        log_start = self._known_good.log_start
        self._contents = FolderContents(self._files.disk, self._folder, log_start)
        if self._contents.is_swapping:
            yield partial(finish_swap, self._files.disk, self._folder)
            self._contents = FolderContents(self._files.disk, self._folder, log_start)
        self._epochs_known = self._contents.read_epochs(self._epochs) and self._epochs.last < self._leader_epoch
        if not self._epochs_known:
            self._epochs = LeaderEpochs()
        yield from self._find_aborted()
        self._snapshot_offset = self._contents.read_producers(self._producers, self._trusted_end, self._now_ms)
        for aborted in self._contents.cut_aborted(self._snapshot_offset):
            self._producers.transactions.aborted.add(aborted)
        if self._contents.needs_folder_sync:
            # A removed snapshot that came back after a power cut would be taken for the state after records that are
            # written next.
            yield partial(self._files.disk.sync_folder, self._folder)
        segments = list[Segment]()
        yield from self._open_all(segments)
        segment_list = SegmentList(self._files, self._folder, segments or [self._first_segment(log_start)])
        if segment_list.end_offset < self._known_good.known_end:
            yield from self._roll_to_known_end(segment_list)
        unsynced = unsynced_parts(segment_list, self._known_good.synced)
        if self._must_sync and unsynced:
            yield partial(sync_parts, segment_list, unsynced)
            unsynced = []
        if self._epochs.drop_above(self._leader_epoch - 1):
            self._faults.append(f"{self._folder}: a batch claims a leader epoch that never existed")
        log_start = max(log_start, segment_list.start_offset)
        self._epochs.cut(segment_list.end_offset)
        self._epochs.begin_at(log_start)
        if log_start and not self._known_good.clean:
            # Nothing else knows the producers whose batches were deleted.
            yield partial(self._contents.sync_producers, self._snapshot_offset)
        self._contents.remove_old_snapshots(self._snapshot_offset, self._contents.segments)
        synced = segment_list.end_offset if self._must_sync else min(self._known_good.synced, segment_list.end_offset)
        clean = self._known_good.clean and synced == self._snapshot_offset == segment_list.end_offset
        epochs_from = self._snapshot_offset if self._epochs_known else EARLIEST_OFFSET
        return Recovered(
            segment_list=segment_list,
            log_start=log_start,
            producers=self._producers,
            epochs=self._epochs,
            synced=synced,
            unsynced=unsynced,
            clean=clean,
            snapshot=self._snapshot_offset,
            epochs_unknown=range(epochs_from, segment_list.end_offset),
            ends_in_gap=segment_list.ends_in_gap and log_start < segment_list.end_offset,
            left_over=self._contents.left_over,
            faults=self._faults,
        )

    def _find_aborted(self) -> Steps:
        self._trusted_end = self._side_files_end()
        if self._contents.has_aborted:  # perhaps a million transactions

            def read() -> None:
                self._trusted_end = self._contents.read_aborted(self._trusted_end)

            yield read

    def _side_files_end(self) -> int:
        """
        Up to where the side files can be trusted. After a crash of the machine a producer snapshot may be there and the
        index of aborted transactions not, unless they were synced with the end of a segment.
        """
        known_good, bases = self._known_good, self._contents.segments
        if known_good.nothing_missing or not bases:
            return known_good.settled
        synced_bases = [base for base in bases if base < known_good.synced or base <= known_good.log_start]
        return min(known_good.settled, max(synced_bases, default=EARLIEST_OFFSET))

    def _open_all(self, segments: list[Segment]) -> Steps:
        bases = self._contents.segments
        finished = [base for base, following in pairwise(bases) if self._needs_no_recovery(base, following)]
        if len(finished) > _SEGMENTS_AT_ONCE:
            yield partial(self._find_endings, finished)
        else:
            self._find_endings(finished)
        for base, following in zip(bases, [*bases[1:], None], strict=False):
            if segments and not self._may_follow(segments[-1], base):
                yield self._report(plan_setting_aside(self._files.disk, self._folder, base))
                continue
            segments.append(Segment(self._files, self._folder, base))
            yield from self._open(segments[-1], following)
            next_offset = segments[-1].next_offset
            if following is not None and next_offset < following and self._may_follow(segments[-1], following):
                missing = f"offsets {next_offset} to {following - 1} are missing after it"
                self._faults.append(f"{segments[-1].path}: {missing}; consumers continue from {following}")

    def _report(self, cut: Truncation) -> Work:
        self._faults.append(cut.message)
        return cut.work

    def _roll_to_known_end(self, segment_list: SegmentList) -> Steps:
        last, reached, known_end = segment_list.segments[-1], segment_list.end_offset, self._known_good.known_end
        missing = f"offsets {reached} to {known_end - 1} are missing after it"
        self._faults.append(f"{last.path}: {missing}; consumers continue from {known_end}")
        last.next_offset = known_end
        segment_list.roll()
        last.next_offset = reached
        yield partial(self._save_side_files, last, known_end)

    def _first_segment(self, base: int) -> Segment:
        segment = Segment(self._files, self._folder, base)
        self._files.get(segment.path, create=True)
        return segment

    def _may_follow(self, last: Segment, base: int) -> bool:
        """
        Whether a segment can follow the last one, which may have lost its end.
        """
        return self._known_good.nothing_missing or base <= self._known_good.settled or base == last.next_offset

    def _open(self, segment: Segment, following: int | None) -> Steps:
        base = segment.base_offset
        if base in self._endings:
            next_offset = self._endings[base]
            if next_offset is not None:
                segment.trust_files(self._contents.size(base), next_offset)
                return
            self._faults.append(f"{segment.path}: its indexes were damaged, and are rebuilt")
        elif self._contents.is_indexed(base) and self._known_good.nothing_missing and self._epochs_known:
            yield from segment.resume(self._snapshot_offset)
        yield from self._recover_segment(segment, following)
        if following is not None:
            segment.seal()
            yield partial(self._save_side_files, segment, following)

    def _needs_no_recovery(self, base: int, following: int) -> bool:
        is_intact = self._known_good.nothing_missing or following < self._known_good.synced
        return (
            is_intact and self._epochs_known and following <= self._snapshot_offset and self._contents.is_indexed(base)
        )

    def _find_endings(self, bases: list[int]) -> None:
        for base in bases:
            path = self._folder / file_name(base, LOG)
            self._endings[base] = end_by_indexes(self._files.disk, path, base, self._contents.size(base))

    def _save_side_files(self, segment: Segment, following: int) -> None:
        """
        Save and sync the side files of a full segment, so that the next start trusts them.
        """
        segment.indexes.save()
        if following >= self._snapshot_offset:
            aborted = self._producers.transactions.aborted
            save_aborted(self._files.disk, segment, aborted, since=self._snapshot_offset - 1, sync=True)
            snapshot = segment.path.with_name(file_name(following, SNAPSHOT))
            self._files.disk.write(snapshot, encode_snapshot(self._producers), sync=True)
        for suffix in (INDEX, TIME_INDEX):
            with closing(self._files.disk.open(segment.path.with_suffix(suffix))) as file:
                file.sync()

    def _recover_segment(self, segment: Segment, following: int | None) -> Steps:
        end = self._contents.size(segment.base_offset)
        segment_recovery = SegmentRecovery(self._files, segment, end, self._known_good, partial(self._add, segment))
        yield from segment_recovery.steps(following)
        self._faults += segment_recovery.faults

    def _add(self, segment: Segment, batch: Batch) -> str | None:
        """
        Add a good batch to the log. Returns what is wrong with it if its leader epoch is impossible.
        """
        header = batch.header
        epoch, offset = header.partition_leader_epoch, header.base_offset
        if not 0 <= epoch < self._leader_epoch:
            return f"leader epoch {epoch}, although {self._leader_epoch} begins only now"
        segment.add(header, offset, self._interval)
        self._add_epoch(epoch, offset)
        if offset < self._snapshot_offset:
            return None
        if is_hole(header):
            self._producers.transactions.compacted(header.last_offset + 1)
        elif header.producer_id >= 0:
            try:
                self._producers.update(batch, offset, self._now_ms)
            except Malformed as malformed:
                return f"its marker cannot be read: {malformed}"
        return None

    def _add_epoch(self, epoch: int, offset: int) -> None:
        """
        Take the leader epoch from a batch if no file has it, as Kafka does. A single batch may claim a wrong one:
        docs/decisions/0004-log.md, "Leader epochs", says why two later batches that agree overrule it. A batch that
        stands before the start of the last known epoch is ignored: it cannot contradict an epoch that begins after it.
        """
        last = self._epochs.last
        if epoch >= last:
            self._epochs.assign(epoch, offset)
            self._smaller_epoch = NO_EPOCH
        elif self._epochs.at(offset) != last:
            return
        elif epoch == self._smaller_epoch:
            self._epochs.drop_above(epoch)
        else:
            self._smaller_epoch = epoch
