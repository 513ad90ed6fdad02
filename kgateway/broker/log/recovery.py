"""
Opens the log of a partition as the last process, or the last crash, has left it.

What was settled before is believed: its indexes are there, its producers are in a snapshot. All behind that is looked
through batch by batch and checked: the indexes, the producers and the leader epochs are made up from it, and where
something is that no batch can be, with nothing good behind it, the log ends.

Damage with good batches behind it stays where it is and is passed over, where nothing can be missing there: it may have
been acknowledged, and what is behind it was. So it is after the death of the process; and after that of the machine, as
far as the log was synced. Behind that anything may be missing in the middle, and the first damage ends the log, or what
is read would not be a prefix of what was written. A batch of which only the offset, or the leader epoch, cannot be is
all there, and is passed over wherever it stands.

What is cut off is kept beside the segment in a file of its own, `....log.cut-POSITION`, unless it is the beginning of
the one batch that was just being written.

Recovery is a generator, for a large log takes seconds: between two pieces of work it lets others go on, and what waits
for the disk it gives away, to be done in a thread before it goes on itself.
"""

from collections.abc import Generator
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from pathlib import Path

from kgateway.broker import producer_snapshots
from kgateway.broker.epochs import Epochs
from kgateway.broker.log.aside import Cut, set_aside
from kgateway.broker.log.beside import save_aborted
from kgateway.broker.log.compaction.swapping import finish
from kgateway.broker.log.due import Doubtful
from kgateway.broker.log.found_files import FoundFiles
from kgateway.broker.log.looking_through import LookingThrough, Work
from kgateway.broker.log.open_files import OpenFiles
from kgateway.broker.log.partition_log import PartitionLog
from kgateway.broker.log.sealed import ending
from kgateway.broker.log.segment import LOG, Segment, file_name
from kgateway.broker.log.segment_indexes import INDEX, TIME_INDEX
from kgateway.broker.log.trust import Trust
from kgateway.broker.log.unsynced import make_last, unsynced
from kgateway.broker.producer_snapshots import SNAPSHOT
from kgateway.broker.producers import ProducerTable
from kgateway.cluster.config import TopicConfig
from kgateway.cluster.partition import EARLIEST_OFFSET, NO_EPOCH
from kgateway.records.batch import Batch
from kgateway.records.thinned import is_hole
from kgateway.wire.malformed import Malformed

Steps = Generator[Work | None, None, None]

_SEGMENTS_AT_ONCE = 8  # of which the ends are looked at with everybody waiting


@dataclass(slots=True)
class Recovered:
    """
    A log, ready to go on, and what was found wrong with it.
    """

    log: PartitionLog
    log_start: int
    producers: ProducerTable
    epochs: Epochs
    synced: int  # before this all will outlast the machine
    doubtful: list[Doubtful]  # what is to be written again before it is synced
    clean: bool  # so will the files beside the segments
    snapshot: int  # the offset of the file that told of the producers, or where there was none, the earliest
    looked_through: range  # the offsets of which no file told the leader epoch
    left_over: list[Path]  # files that are to be removed
    faults: list[str] = field(default_factory=list)


class Recovery:
    """
    That of one partition.
    """

    def __init__(
        self,
        files: OpenFiles,
        folder: Path,
        trust: Trust,
        producers: ProducerTable,
        now_ms: int,
        leader_epoch: int,
        config: TopicConfig,
    ) -> None:
        self._files = files
        self._folder = folder
        self._found: FoundFiles
        self._trust = trust
        self._producers = producers
        self._leader_epoch = leader_epoch  # that begins now
        self._now_ms = now_ms
        self._interval = config.index_interval_bytes
        self._sync = config.acks_fsync  # what is there will be read, so it is to outlast the machine by then
        self._epochs = Epochs()
        self._faults: list[str] = []
        self._epochs_known = False
        self._endings: dict[int, int | None] = {}  # the offsets behind full segments, where their indexes lead there
        self._smaller = NO_EPOCH  # the last batch's, where it was smaller than one before
        self._settled = EARLIEST_OFFSET  # before it files beside the segments are believed
        self._start = EARLIEST_OFFSET  # before it the producers are known

    def run(self) -> Generator[Work | None, None, Recovered]:
        """
        Step by step to the log.
        """
        log_start = self._trust.log_start
        self._found = FoundFiles(self._files.disk, self._folder, log_start)
        if self._found.is_swapping:
            yield partial(finish, self._files.disk, self._folder)
            self._found = FoundFiles(self._files.disk, self._folder, log_start)
        self._epochs_known = self._found.read_epochs(self._epochs) and self._epochs.last < self._leader_epoch
        if not self._epochs_known:
            self._epochs = Epochs()
        yield from self._find_aborted()
        self._start = self._found.read_producers(self._producers, self._settled, self._now_ms)
        for aborted in self._found.keep_aborted(self._start):
            self._producers.transactions.aborted.add(aborted)
        if self._found.has_misleading:
            # One that came back when the power goes would tell of what is written next.
            yield partial(self._files.disk.sync_folder, self._folder)
        segments = list[Segment]()
        yield from self._open_all(segments)
        log = PartitionLog(self._files, self._folder, segments or [self._begin(log_start)])
        if log.end_offset < self._trust.known_end:
            yield from self._end_where_it_was(log)
        doubtful = unsynced(log, self._trust.synced)
        if self._sync and doubtful:
            yield partial(make_last, log, doubtful)
            doubtful = []
        if self._epochs.fall_back(self._leader_epoch - 1):
            self._faults.append(f"{self._folder}: a batch tells of a leader epoch that there never was")
        log_start = max(log_start, log.start_offset)
        self._epochs.cut(log.end_offset)
        self._epochs.begin_at(log_start)
        if log_start and not self._trust.clean:
            # Nothing else tells of the producers whose batches were let go.
            yield partial(self._found.sync_producers, self._start)
        self._found.keep_producers(self._start, self._found.segments)
        synced = log.end_offset if self._sync else min(self._trust.synced, log.end_offset)
        clean = self._trust.clean and synced == self._start == log.end_offset
        found = range(self._start if self._epochs_known else EARLIEST_OFFSET, log.end_offset)
        return Recovered(
            log,
            log_start,
            self._producers,
            self._epochs,
            synced,
            doubtful,
            clean,
            self._start,
            found,
            self._found.left_over,
            self._faults,
        )

    def _find_aborted(self) -> Steps:
        self._settled = self._sure()
        if self._found.tells_of_aborted:  # perhaps of a million

            def read() -> None:
                self._settled = self._found.read_aborted(self._settled)

            yield read

    def _sure(self) -> int:
        """
        Up to where the files beside the segments can tell of all. When the machine has died, one of producers may be
        there, and one of aborted transactions not, but for those that were synced with the end of a segment.
        """
        trust, bases = self._trust, self._found.segments
        if trust.process_only or not bases:
            return trust.settled
        sure = [base for base in bases if base < trust.synced or base <= trust.log_start]
        return min(trust.settled, max(sure, default=EARLIEST_OFFSET))

    def _open_all(self, segments: list[Segment]) -> Steps:
        bases = self._found.segments
        finished = [base for base, following in pairwise(bases) if self._is_finished(base, following)]
        if len(finished) > _SEGMENTS_AT_ONCE:
            yield partial(self._look_at_ends, finished)
        else:
            self._look_at_ends(finished)
        for base, following in zip(bases, [*bases[1:], None], strict=False):
            if segments and not self._may_follow(segments[-1], base):
                yield self._told(set_aside(self._files.disk, self._folder, base))
                continue
            segments.append(Segment(self._files, self._folder, base))
            yield from self._open(segments[-1], following)
            next_offset = segments[-1].next_offset
            if following is not None and next_offset < following and self._may_follow(segments[-1], following):
                missing = f"offsets {next_offset} to {following - 1} are missing behind it"
                self._faults.append(f"{segments[-1].path}: {missing}; consumers go on from {following}")

    def _told(self, cut: Cut) -> Work:
        self._faults.append(cut.told)
        return cut.work

    def _end_where_it_was(self, log: PartitionLog) -> Steps:
        """
        Records are missing at the end: nobody else gets their offsets.
        """
        last, reached, known_end = log.segments[-1], log.end_offset, self._trust.known_end
        missing = f"offsets {reached} to {known_end - 1} are missing behind it"
        self._faults.append(f"{last.path}: {missing}; consumers go on from {known_end}")
        last.next_offset = known_end
        log.roll()
        last.next_offset = reached
        yield partial(self._finish, last, known_end)

    def _begin(self, base: int) -> Segment:
        segment = Segment(self._files, self._folder, base)
        self._files.get(segment.path, create=True)
        return segment

    def _may_follow(self, last: Segment, base: int) -> bool:
        """
        Whether a segment can stand behind the last, which may have lost its end.
        """
        return self._trust.process_only or base <= self._trust.settled or base == last.next_offset

    def _open(self, segment: Segment, following: int | None) -> Steps:
        base = segment.base_offset
        if base in self._endings:
            next_offset = self._endings[base]
            if next_offset is not None:
                segment.take_over(self._found.size(base), next_offset)
                return
            self._faults.append(f"{segment.path}: its indexes are damaged, and made again")
        elif self._found.is_indexed(base) and self._trust.process_only and self._epochs_known:
            yield from segment.resume(self._start)
        yield from self._look_through(segment, following)
        if following is not None:
            segment.seal()
            yield partial(self._finish, segment, following)

    def _is_finished(self, base: int, following: int) -> bool:
        """
        Whether the files of a full segment, behind which the one with this offset follows, are all as they should be.
        """
        outlasted = self._trust.process_only or following < self._trust.synced
        return outlasted and self._epochs_known and following <= self._start and self._found.is_indexed(base)

    def _look_at_ends(self, bases: list[int]) -> None:
        for base in bases:
            path = self._folder / file_name(base, LOG)
            self._endings[base] = ending(self._files.disk, path, base, self._found.size(base))

    def _finish(self, segment: Segment, following: int) -> None:
        """
        The indexes of a full segment are trusted from now on, and its producers are known when it is let go.
        """
        segment.indexes.save()
        if following >= self._start:
            aborted = self._producers.transactions.aborted
            save_aborted(self._files.disk, segment, aborted, since=self._start - 1, sync=True)
            snapshot = segment.path.with_name(file_name(following, SNAPSHOT))
            self._files.disk.write(snapshot, producer_snapshots.written(self._producers), sync=True)
        for suffix in (INDEX, TIME_INDEX):
            with closing(self._files.disk.open(segment.path.with_suffix(suffix))) as file:
                file.sync()

    def _look_through(self, segment: Segment, following: int | None) -> Steps:
        end = self._found.size(segment.base_offset)
        looking = LookingThrough(self._files, segment, end, self._trust, partial(self._note, segment))
        yield from looking.steps(following)
        self._faults += looking.faults

    def _note(self, segment: Segment, batch: Batch) -> str | None:
        """
        A good batch follows; why it is none, where its leader epoch cannot be.
        """
        header = batch.header
        epoch, offset = header.partition_leader_epoch, header.base_offset
        if not 0 <= epoch < self._leader_epoch:
            return f"leader epoch {epoch}, and {self._leader_epoch} begins only now"
        segment.note(header, offset, self._interval)
        self._note_epoch(epoch, offset)
        if offset < self._start:
            return None
        if is_hole(header):
            self._producers.transactions.compacted(header.last_offset + 1)
        elif header.producer_id >= 0:
            try:
                self._producers.note(batch, offset, self._now_ms)
            except Malformed as malformed:
                return f"its marker cannot be read: {malformed}"
        return None

    def _note_epoch(self, epoch: int, offset: int) -> None:
        """
        No CRC covers it: one batch may tell anything, but where two tell a smaller epoch, the larger one was not true.
        Of an epoch that begins behind them they tell nothing; its batches may be in a segment that is not looked at.
        """
        last = self._epochs.last
        if epoch >= last:
            self._epochs.assign(epoch, offset)
            self._smaller = NO_EPOCH
        elif self._epochs.at(offset) != last:
            return
        elif epoch == self._smaller:
            self._epochs.fall_back(epoch)
        else:
            self._smaller = epoch
