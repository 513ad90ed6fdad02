"""
Checks the folder of one partition, whoever wrote it.
"""

import re
from pathlib import Path

from kgateway.broker.aborted import ABORTED_INDEX
from kgateway.broker.epochs import EPOCH_FILE
from kgateway.broker.log.checking_beside import CheckedEpochs, check_aborted, check_end, check_snapshot, check_state
from kgateway.broker.log.checking_segment import CheckedSegment, Reached
from kgateway.broker.log.disk import TEMPORARY
from kgateway.broker.log.findings import Finding, Steps, Survey
from kgateway.broker.log.found_files import COMPACTED, left_over, numbered, offsets_of
from kgateway.broker.log.partition_folder import METADATA
from kgateway.broker.log.segment import LOG, file_name
from kgateway.broker.log.segment_indexes import INDEX, TIME_INDEX
from kgateway.broker.log.state_snapshots import is_state
from kgateway.broker.producer_snapshots import SNAPSHOT
from kgateway.cluster.config_rows import LONG_MAX
from kgateway.cluster.partition import EARLIEST_OFFSET

_ASIDE = re.compile(r"[0-9]{20}\.log\.cut-[0-9]+")


class CheckedPartition:
    """
    One partition. Where a log is compacted, or not ours, offsets may be missing between two segments; what is before
    its start is nobody's any more.
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
        """
        Look through all of its files.
        """
        epochs = CheckedEpochs(self._survey, self._folder, self._log_start)
        snapshots = offsets_of(self._names, SNAPSHOT)
        for name in self._names:
            path, found = self._folder / name, numbered(name)
            if found and found[1] == SNAPSHOT:
                yield from self._survey.reading(path, check_snapshot(self._survey, path))
            elif found and found[1] == ABORTED_INDEX:
                yield self._left(path)
                yield from self._survey.reading(
                    path, check_aborted(self._survey, path, found[0], self._end_of(found[0]))
                )
            elif is_state(name):
                yield from self._survey.reading(path, check_state(self._survey, path))
            else:
                yield self._left(path)
        if self._left_over and not self._survey.in_use:
            yield self._let_go()
        yield from self._segments(epochs)
        yield from epochs.steps(self.reached)
        yield from check_end(self._folder, snapshots, self.reached)

    def _end_of(self, base: int) -> int:
        """
        Where the next segment begins, if there is one.
        """
        return next((following for following in offsets_of(self._names, LOG) if following > base), LONG_MAX)

    def _let_go(self) -> Finding:
        count = len(self._left_over)
        what = f"{count} file{' is' if count == 1 else 's are'} left of records that were deleted"
        remedy = "nothing has to be done: they go when the partition is next opened"
        return Finding(self._folder, what, remedy, is_fault=False)

    def _segments(self, epochs: CheckedEpochs) -> Steps:
        bases = offsets_of(self._names, LOG)
        self.reached.next_offset = bases[0] if bases else EARLIEST_OFFSET
        for base in bases:
            path = self._folder / file_name(base, LOG)
            yield self._border(path, base)
            self.reached.next_offset = max(base, self.reached.next_offset)
            yield from self._survey.reading(path, self._segment(path, epochs, is_last=base == bases[-1]))

    def _segment(self, path: Path, epochs: CheckedEpochs, *, is_last: bool) -> Steps:
        gaps = self._may_have_gaps
        segment = CheckedSegment(self._survey, path, self.reached, epochs.first, is_last=is_last, may_have_gaps=gaps)
        yield from segment.steps()

    def _border(self, path: Path, base: int) -> Finding | None:
        """
        What is wrong between this segment and the one before it.
        """
        expected = self.reached.next_offset
        if base < expected:
            what = f"it begins with offset {base}, and the segment before it ends with {expected - 1}"
            remedy = "one of the two is of another log; with the gateway stopped, move that one elsewhere"
            return Finding(path, what, remedy, offset=base)
        if base > expected and not self._may_have_gaps:
            what = f"offsets {expected} to {base - 1} are missing before it"
            remedy = (
                "with the gateway stopped, bring the segment that is missing, or the end of the one before, back from "
                f"a copy; without one, consumers go on from {base}"
            )
            return Finding(path, what, remedy, offset=expected)
        return None

    def _left(self, path: Path) -> Finding | None:
        """
        What is to be said of a file that is neither of a log nor checked here.
        """
        if _ASIDE.fullmatch(path.name):
            what = "it was cut off a damaged log at a start, and is kept"
            remedy = "`kgateway log dump` shows what is in it; remove it when nobody needs it"
            return Finding(path, what, remedy, is_fault=False)
        if path.name.endswith(TEMPORARY):
            if self._survey.in_use:
                return None
            remedy = "nothing has to be done: the next start removes it"
            return Finding(path, "a process ended while it wrote it", remedy, is_fault=False)
        if path.name == COMPACTED:
            if self._survey.in_use:
                return None
            what = "a process ended while compacted segments took the place of others"
            remedy = "nothing has to be done: the next start does the rest; what else is found here may come of it"
            return Finding(path, what, remedy, is_fault=False)
        found = numbered(path.name)
        if found and found[1] in (INDEX, TIME_INDEX, ABORTED_INDEX) and file_name(found[0], LOG) not in self._names:
            what = "it is the index of a segment that is not there"
            return Finding(path, what, "bring the segment back from a copy, or remove this file")
        if found or path.name in (EPOCH_FILE, METADATA):
            return None
        return Finding(path, "kgateway knows no such file", "remove it if nobody needs it", is_fault=False)
