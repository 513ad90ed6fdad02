"""
Checks the folder of one partition, whoever wrote it: its segments, each batch of their logs, and both indexes against
the batches.
"""

import re
from collections.abc import Callable
from pathlib import Path

from kgateway.broker.log.data_folder.partition_folder import METADATA
from kgateway.broker.log.data_folder.state_snapshots import is_state
from kgateway.broker.log.files.disk import TEMPORARY, File
from kgateway.broker.log.inspection.findings import Finding, Reached, Steps, Survey
from kgateway.broker.log.inspection.index_check import OffsetIndexCheck, TimeIndexCheck
from kgateway.broker.log.inspection.side_file_check import (
    EpochCheck,
    check_aborted,
    check_end,
    check_snapshot,
    check_state,
)
from kgateway.broker.log.recovery.folder_contents import left_over
from kgateway.broker.log.segments.batch_scan import Damage, is_unfinished
from kgateway.broker.log.segments.damage import base_of, walk
from kgateway.broker.log.segments.file_names import COMPACTED, LOG, file_name, numbered, offsets_of
from kgateway.broker.log.segments.index import INDEX, TIME_INDEX
from kgateway.broker.partition.leader_epochs import EPOCH_FILE
from kgateway.broker.partition.producer_snapshot import SNAPSHOT
from kgateway.broker.partition.transactions import ABORTED_INDEX
from kgateway.cluster.config_rows import LONG_MAX
from kgateway.cluster.partition import EARLIEST_OFFSET
from kgateway.plurals import counted
from kgateway.records.batch import BatchHeader

UNKNOWN_FILE = ("kgateway does not know this file", "no action is needed: it is left as it is")
_STEP = 4 << 20
_COPY = "with the gateway stopped, restore the file from a copy to recover them"
_CUT = "no action is needed: it was not acknowledged, and the next start truncates it"


class SegmentCheck:
    """
    One segment; `epochs` checks the first batch of each leader epoch.
    """

    def __init__(
        self,
        survey: Survey,
        path: Path,
        reached: Reached,
        epochs: Callable[[BatchHeader], Finding | None],
        *,
        is_last: bool,
        may_have_gaps: bool,
    ) -> None:
        self._survey = survey
        self._path = path
        self._reached = reached
        self._epochs = epochs
        self._is_last = is_last
        self._may_have_gaps = may_have_gaps
        base_offset = self._base_offset = base_of(path)
        self._offsets = OffsetIndexCheck(survey, path.with_suffix(INDEX), base_offset, is_last=is_last)
        self._times = TimeIndexCheck(survey, path.with_suffix(TIME_INDEX), base_offset, is_last=is_last)

    def steps(self) -> Steps:
        file = self._survey.disk.open(self._path)
        size = file.size
        try:
            yield from self._log(file, size)
        finally:
            file.close()
        self._survey.tally.files += 1
        yield self._offsets.finding(size)
        yield self._times.finding(size)

    def _log(self, file: File, size: int) -> Steps:
        tally, offsets, times, reached = self._survey.tally, self._offsets, self._times, self._reached
        position, told = 0, 0
        damage: Damage | None = None
        for found in walk(file.read, size, self._base_offset):
            if isinstance(found, Damage):
                damage = found
                position += found.size
                offsets.skip(position)
                continue
            header = found.header
            last = header.last_offset
            if damage or header.base_offset != reached.next_offset:
                yield (
                    self._damage_inside(damage, header.base_offset)
                    if damage
                    else self._missing_inside(header, position)
                )
            if header.partition_leader_epoch != reached.leader_epoch:
                yield self._epochs(header)
                reached.leader_epoch = header.partition_leader_epoch
            if times.next <= last:
                times.meet(header, is_known=damage is None)
            if header.max_timestamp > times.largest or header.max_timestamp < header.base_timestamp:
                times.later(header)
            if offsets.next < position + header.size:
                offsets.meet(header, position)
            self._survey.note_producer(header.producer_id)
            damage = None
            reached.next_offset = last + 1
            position += header.size
            tally.batches += 1
            tally.records += header.records_count
            if position - told >= _STEP:
                tally.bytes += position - told
                told = position
                yield None
        tally.bytes += size - told
        reached.is_known = True
        if damage:
            yield self._damage_at_end(file, damage)
        else:
            offsets.end(position)
            times.end(reached.next_offset)

    def _missing_inside(self, header: BatchHeader, position: int) -> Finding | None:
        if self._may_have_gaps:
            return None
        expected = self._reached.next_offset
        what = f"a batch there begins with offset {header.base_offset}, but {expected} is expected"
        remedy = f"its first bytes, which the CRC does not cover, may be damaged, or records are missing; {_COPY}"
        return Finding(self._path, what, remedy, byte=position, offset=expected)

    def _damage_inside(self, damage: Damage, following: int) -> Finding:
        first = self._reached.next_offset
        known = (
            "although its bytes are intact"
            if damage.misplaced
            else f"and its {counted(damage.size, 'byte')} cannot be interpreted"
        )
        what = f"{damage.reason}, {known}"
        if following <= first:
            return Finding(self._path, what, "no offset is missing", byte=damage.position, offset=first)
        lost = f"offset {first}" if following == first + 1 else f"offsets {first} to {following - 1}"
        remedy = f"consumers get CORRUPT_MESSAGE for {lost} and can continue from {following}; {_COPY}"
        return Finding(self._path, what, remedy, byte=damage.position, offset=first)

    def _damage_at_end(self, file: File, damage: Damage) -> Finding:
        place, offset = damage.position, self._reached.next_offset
        may_be_half = self._is_last and not self._survey.was_clean
        if may_be_half and is_unfinished(file.read, place, file.size, offset):
            what, remedy = (
                f"it has an incomplete batch, of which only the first {counted(damage.size, 'byte')} were written",
                _CUT,
            )
            if self._survey.in_use:
                what, remedy = "a batch is being written there", "no action is needed"
            return Finding(self._path, what, remedy, byte=place, offset=offset, is_fault=False)
        what = f"{damage.reason}, and the rest of the file ({counted(damage.size, 'byte')}) cannot be interpreted"
        remedy = f"the records in them, from offset {offset} on, are lost; {_COPY}"
        return Finding(self._path, what, remedy, byte=place, offset=offset)


_ASIDE = re.compile(r"[0-9]{20}\.log\.cut-[0-9]+")


class PartitionCheck:
    """
    One partition. If its log is compacted, or not ours, offsets may be missing between segments; anything before the
    log start does not count.
    """

    def __init__(
        self, survey: Survey, folder: Path, log_start: int | None = None, *, may_have_gaps: bool = False
    ) -> None:
        self._survey = survey
        self._folder = folder
        self._may_have_gaps = may_have_gaps or not survey.is_ours
        self.reached = Reached(EARLIEST_OFFSET)
        self._log_start = log_start
        self._names = survey.disk.names(folder)
        self._left_over = left_over(self._names, log_start or EARLIEST_OFFSET)
        for name in self._left_over:
            del self._names[name]
        self.size = sum(self._names.values())

    def steps(self) -> Steps:
        epochs = EpochCheck(self._survey, self._folder, self._log_start)
        snapshots = offsets_of(self._names, SNAPSHOT)
        for name in self._names:
            path, found = self._folder / name, numbered(name)
            if found and found[1] == SNAPSHOT:
                yield from self._survey.reading(path, check_snapshot(self._survey, path))
            elif found and found[1] == ABORTED_INDEX:
                yield self._other_file(path)
                yield from self._survey.reading(
                    path, check_aborted(self._survey, path, found[0], self._following_base(found[0]))
                )
            elif is_state(name):
                yield from self._survey.reading(path, check_state(self._survey, path))
            else:
                yield self._other_file(path)
        if self._left_over and not self._survey.in_use:
            yield self._deleted()
        yield from self._segments(epochs)
        yield from epochs.steps(self.reached)
        if self.reached.is_known:
            yield from check_end(self._folder, snapshots, self.reached)

    def _following_base(self, base: int) -> int:
        return next((following for following in offsets_of(self._names, LOG) if following > base), LONG_MAX)

    def _deleted(self) -> Finding:
        count = len(self._left_over)
        what = f"{count} file{' is' if count == 1 else 's are'} left over from deleted records"
        remedy = "no action is needed: they are removed when the partition is next opened"
        return Finding(self._folder, what, remedy, is_fault=False)

    def _segments(self, epochs: EpochCheck) -> Steps:
        bases = offsets_of(self._names, LOG)
        self.reached.next_offset = bases[0] if bases else EARLIEST_OFFSET
        self.reached.is_known = True
        for base in bases:
            path = self._folder / file_name(base, LOG)
            if self.reached.is_known:
                yield self._border_fault(path, base)
            self.reached.next_offset = max(base, self.reached.next_offset)
            self.reached.is_known = False
            yield from self._survey.reading(path, self._segment(path, epochs, is_last=base == bases[-1]))

    def _segment(self, path: Path, epochs: EpochCheck, *, is_last: bool) -> Steps:
        gaps = self._may_have_gaps
        segment = SegmentCheck(self._survey, path, self.reached, epochs.first, is_last=is_last, may_have_gaps=gaps)
        yield from segment.steps()

    def _border_fault(self, path: Path, base: int) -> Finding | None:
        expected = self.reached.next_offset
        if base < expected:
            what = f"it begins with offset {base}, but the segment before it ends with {expected - 1}"
            remedy = "one of the two belongs to another log; with the gateway stopped, move that one elsewhere"
            return Finding(path, what, remedy, offset=base)
        if base > expected and not self._may_have_gaps:
            what = f"offsets {expected} to {base - 1} are missing before it"
            remedy = (
                "with the gateway stopped, restore the missing segment, or the end of the one before it, from a copy; "
                f"without one, consumers continue from {base}"
            )
            return Finding(path, what, remedy, offset=expected)
        return None

    def _other_file(self, path: Path) -> Finding | None:
        """
        The finding for a file that is neither a log nor checked here.
        """
        if _ASIDE.fullmatch(path.name):
            what = "it was truncated from a damaged log at a start, and is kept"
            remedy = "`kgateway log dump` shows what is in it; remove it if nobody needs it"
            return Finding(path, what, remedy, is_fault=False)
        if path.name.endswith(TEMPORARY):
            if self._survey.in_use:
                return None
            remedy = "no action is needed: the next start removes it"
            return Finding(path, "a process ended while writing it", remedy, is_fault=False)
        if path.name == COMPACTED:
            if self._survey.in_use:
                return None
            what = "a process ended while compacted segments were replacing others"
            remedy = "no action is needed: the next start finishes it; other findings here may be a result of it"
            return Finding(path, what, remedy, is_fault=False)
        found = numbered(path.name)
        if found and found[1] in (INDEX, TIME_INDEX, ABORTED_INDEX) and file_name(found[0], LOG) not in self._names:
            what = "it is the index of a missing segment"
            return Finding(path, what, "restore the segment from a copy, or remove this file")
        if found or path.name in (EPOCH_FILE, METADATA):
            return None
        return Finding(path, *UNKNOWN_FILE, is_fault=False)
