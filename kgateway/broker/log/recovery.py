"""
Opens the log of a partition as the last process, or the last crash, has left it.

What was settled before is believed: its indexes are there, its producers are in a snapshot. All behind that is looked
through batch by batch and checked: the indexes, the producers and the leader epochs are made up from it, and where
something is that no batch can be, the log ends. When only the process died, nothing that was written can be missing;
then a batch that is damaged, with good ones behind it, stays where it is, for it may have been acknowledged and those
behind it were. When the machine died, anything that was not synced may be missing in the middle, and the first damage
ends the log, or what is read would not be a prefix of what was written.

What is cut off is kept beside the segment in a file of its own, `....log.cut-POSITION`, unless it is the beginning of
the one batch that was just being written.

Recovery is a generator, for a large log takes seconds: between two pieces of work it lets others go on, and what waits
for the disk it gives away, to be done in a thread before it goes on itself.
"""

from collections.abc import Callable, Generator
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import NamedTuple

from kgateway.broker.log.aside import Cut, cut, set_aside
from kgateway.broker.log.due import Doubtful, Due, files_beside
from kgateway.broker.log.epochs import Epochs
from kgateway.broker.log.found_files import FoundFiles
from kgateway.broker.log.open_files import OpenFiles
from kgateway.broker.log.partition_log import PartitionLog
from kgateway.broker.log.sealed import ending
from kgateway.broker.log.segment import Segment
from kgateway.broker.log.segment_indexes import INDEX, TIME_INDEX
from kgateway.broker.log.walking import Damage, scan
from kgateway.broker.producers import ProducerTable
from kgateway.cluster.config import TopicConfig
from kgateway.cluster.partition import EARLIEST_OFFSET
from kgateway.records.batch import Batch

Work = Callable[[], object]  # for a thread
Steps = Generator[Work | None, None, None]

_BATCHES_A_STEP = 500
_BYTES_A_STEP = 8 << 20
_SEGMENTS_A_STEP = 50


class Trust(NamedTuple):
    """
    What is known of a log before it is opened: that all before `synced` will outlast the machine, and that all before
    `settled` is as it was written; with `process_only`, that the machine has not died since, so that nothing can be
    missing behind it either; with `clean`, that all there is was synced.
    """

    synced: int
    settled: int
    process_only: bool
    clean: bool = False


@dataclass(slots=True)
class Recovered:
    """
    A log, ready to go on, and what was found wrong with it.
    """

    log: PartitionLog
    producers: ProducerTable
    epochs: Epochs
    synced: int  # before this all will outlast the machine
    doubtful: list[Doubtful]  # what is to be written again before it is synced
    clean: bool  # so will the files beside the segments
    snapshot: int  # the offset of the file that told of the producers, or where there was none, the earliest
    looked_through: range  # the offsets of which no file told the leader epoch
    faults: list[str] = field(default_factory=list)


class Recovery:
    """
    That of one partition.
    """

    def __init__(
        self, files: OpenFiles, folder: Path, trust: Trust, producers: ProducerTable, now_ms: int, config: TopicConfig
    ) -> None:
        self._files = files
        self._folder = folder
        self._found: FoundFiles
        self._trust = trust
        self._producers = producers
        self._now_ms = now_ms
        self._interval = config.index_interval_bytes
        self._sync = config.acks_fsync  # what is there will be read, so it is to outlast the machine by then
        self._epochs = Epochs()
        self._faults: list[str] = []
        self._epochs_known = False
        self._start = EARLIEST_OFFSET  # before it the producers are known

    def run(self) -> Generator[Work | None, None, Recovered]:
        """
        Step by step to the log.
        """
        self._found = FoundFiles(self._files.disk, self._folder)
        self._epochs_known = self._found.read_epochs(self._epochs)
        self._start = self._found.read_producers(self._producers, self._trust.settled, self._now_ms)
        segments = list[Segment]()
        yield from self._open_all(segments)
        log = PartitionLog(self._files, self._folder, segments or [self._first()])
        doubtful = self._doubtful(log)
        if self._sync and doubtful:
            yield partial(self._make_last, log, doubtful)
            doubtful = []
        self._epochs.cut(log.end_offset)
        self._found.keep_producers(self._start, self._found.segments)
        synced = log.end_offset if self._sync else min(self._trust.synced, log.end_offset)
        clean = self._trust.clean and synced == self._start == log.end_offset
        found = range(self._start if self._epochs_known else EARLIEST_OFFSET, log.end_offset)
        return Recovered(log, self._producers, self._epochs, synced, doubtful, clean, self._start, found, self._faults)

    def _open_all(self, segments: list[Segment]) -> Steps:
        bases = self._found.segments
        for base, following in zip(bases, [*bases[1:], None], strict=False):
            if segments and not self._may_follow(segments[-1], base):
                yield self._told(set_aside(self._files.disk, self._folder, base))
                continue
            segments.append(Segment(self._files, self._folder, base))
            if len(segments) % _SEGMENTS_A_STEP == 0:
                yield None
            yield from self._open(segments[-1], following)
            next_offset = segments[-1].next_offset
            if following is not None and next_offset < following and self._may_follow(segments[-1], following):
                missing = f"offsets {next_offset} to {following - 1} are missing behind it"
                self._faults.append(f"{segments[-1].path}: {missing}; consumers go on from {following}")

    def _told(self, cut: Cut) -> Work:
        self._faults.append(cut.told)
        return cut.work

    def _doubtful(self, log: PartitionLog) -> list[Doubtful]:
        """
        What is behind the last sync. If a later one failed, the system takes for written what never was, and nothing
        tells so of a process that was killed at once.
        """
        found = list[Doubtful]()
        for segment in log.segments:
            start = self._position_of(self._trust.synced, segment)
            if start < segment.size:
                found.append(Doubtful(segment.path, start, segment.size - start))
        return found

    def _position_of(self, offset: int, segment: Segment) -> int:
        if offset <= segment.base_offset:
            return 0
        if offset >= segment.next_offset:
            return segment.size
        return segment.position_of(partial(self._read, segment.path), offset, segment.size)

    def _make_last(self, log: PartitionLog, doubtful: list[Doubtful]) -> None:
        """
        Sync what may not be, for it will be read.
        """
        files = list[Path]()
        for segment in log.segments:
            if any(part.path == segment.path for part in doubtful):
                files += [segment.path, *files_beside(segment.path, segment.next_offset)]
        Due(doubtful, files, [self._folder, self._folder.parent]).sync(self._files.disk, [], set())

    def _first(self) -> Segment:
        segment = Segment(self._files, self._folder, EARLIEST_OFFSET)
        self._files.get(segment.path, create=True)
        return segment

    def _may_follow(self, last: Segment, base: int) -> bool:
        """
        Whether a segment can stand behind the last, which may have lost its end.
        """
        return self._trust.process_only or base <= self._trust.settled or base == last.next_offset

    def _open(self, segment: Segment, following: int | None) -> Steps:
        is_indexed = self._found.is_indexed(segment.base_offset)
        if is_indexed and following is not None and self._is_finished(following):
            size = self._found.size(segment.base_offset)
            next_offset = ending(self._files.disk, segment.path, segment.base_offset, size)
            if next_offset is not None:
                segment.take_over(size, next_offset)
                return
            self._faults.append(f"{segment.path}: its indexes are damaged, and made again")
        elif is_indexed and self._trust.process_only and self._epochs_known:
            yield from segment.resume(self._start)
        yield from self._look_through(segment, following)
        if following is not None:
            segment.seal()
            yield partial(self._finish, segment)

    def _is_finished(self, following: int) -> bool:
        """
        Whether the files of a full segment, behind which the one with this offset follows, are all as they should be.
        """
        outlasted = self._trust.process_only or following < self._trust.synced
        return outlasted and self._epochs_known and following <= self._start

    def _finish(self, segment: Segment) -> None:
        """
        The indexes of a full segment are trusted from now on.
        """
        segment.indexes.save()
        for suffix in (INDEX, TIME_INDEX):
            with closing(self._files.disk.open(segment.path.with_suffix(suffix))) as file:
                file.sync()

    def _look_through(self, segment: Segment, following: int | None) -> Steps:
        """
        Note what is in a segment, and cut what cannot be.
        """
        segment.unchecked = range(segment.size)
        doubtful: Damage | None = None
        end = self._found.size(segment.base_offset)
        found_batches = scan(partial(self._read, segment.path), segment.size, end, segment.next_offset)
        count = size = 0
        for found in found_batches:
            count, size = count + 1, size + (len(found.data) if isinstance(found, Batch) else found.size)
            if count >= _BATCHES_A_STEP or size >= _BYTES_A_STEP:
                count = size = 0
                yield None
            if isinstance(found, Batch):
                if doubtful:
                    self._pass_over(segment, doubtful, found.header.base_offset)
                doubtful = None
                self._note(segment, found)
            elif doubtful or found.torn or not self._trust.process_only:
                break
            else:
                doubtful = found
        else:
            found = None
        damage = doubtful or (found if isinstance(found, Damage) else None)
        if doubtful and found is None and following is not None:
            self._pass_over(segment, doubtful, following)
        elif damage:
            yield self._told(cut(self._files, segment, damage, end))

    def _read(self, path: Path, position: int, size: int) -> bytes:
        return self._files.get(path).read(position, size)

    def _note(self, segment: Segment, batch: Batch) -> None:
        header = batch.header
        segment.note(header, header.base_offset, self._interval)
        self._epochs.assign(header.partition_leader_epoch, header.base_offset)
        if header.base_offset >= self._start and header.producer_id >= 0:
            self._producers.remember(header, header.base_offset, self._now_ms)

    def _pass_over(self, segment: Segment, damage: Damage, next_offset: int) -> None:
        """
        Leave a damaged batch where it is, for good ones are behind it.
        """
        segment.size += damage.size
        segment.next_offset = next_offset
        segment.unchecked = range(segment.size)
        self._faults.append(f"{segment.path}, byte {damage.position}: {damage.reason}; it will not be given out")
