"""
Checks a segment: every batch of its log, and both indexes against the batches.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from kgateway.broker.log.checking_index import CheckedOffsets, CheckedTimes
from kgateway.broker.log.disk import File
from kgateway.broker.log.findings import Finding, Steps, Survey
from kgateway.broker.log.going_on import base_of, walk
from kgateway.broker.log.segment_indexes import INDEX, TIME_INDEX
from kgateway.broker.log.walking import Damage, is_unfinished
from kgateway.records.batch import BatchHeader

_STEP = 4 << 20
_COPY = "with the gateway stopped, bring the file back from a copy to have them again"
_CUT = "nothing has to be done: it was not acknowledged, and the next start cuts it off"


@dataclass(slots=True)
class Reached:
    """
    How far a log goes, from segment to segment.
    """

    next_offset: int
    leader_epoch: int = -1


class CheckedSegment:
    """
    One segment; `epochs` is asked about the first batch of each leader epoch.
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
        self._offsets = CheckedOffsets(survey, path.with_suffix(INDEX), base_offset, is_last=is_last)
        self._times = CheckedTimes(survey, path.with_suffix(TIME_INDEX), base_offset, is_last=is_last)

    def steps(self) -> Steps:
        """
        Look through it.
        """
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
                yield self._damaged(damage, header.base_offset) if damage else self._gap(header, position)
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
        if damage:
            yield self._ending(file, damage)
        else:
            offsets.end(position)
            times.end(reached.next_offset)

    def _gap(self, header: BatchHeader, position: int) -> Finding | None:
        """
        In the middle of a segment, where nothing is missing by itself.
        """
        if self._may_have_gaps:
            return None
        expected = self._reached.next_offset
        what = f"a batch there begins with offset {header.base_offset}, and {expected} is next"
        remedy = f"its first bytes, which the CRC does not cover, may be damaged, or records are missing; {_COPY}"
        return Finding(self._path, what, remedy, byte=position, offset=expected)

    def _damaged(self, damage: Damage, following: int) -> Finding:
        """
        With good batches behind it.
        """
        first = self._reached.next_offset
        known = "though its bytes are good" if damage.misplaced else f"and nothing is known of its {damage.size} bytes"
        what = f"{damage.reason}, {known}"
        if following <= first:
            return Finding(self._path, what, "no offset is missing", byte=damage.position, offset=first)
        lost = f"offset {first}" if following == first + 1 else f"offsets {first} to {following - 1}"
        remedy = f"consumers are told CORRUPT_MESSAGE for {lost} and can go on from {following}; {_COPY}"
        return Finding(self._path, what, remedy, byte=damage.position, offset=first)

    def _ending(self, file: File, damage: Damage) -> Finding:
        """
        With nothing behind it in this file.
        """
        place, offset = damage.position, self._reached.next_offset
        may_be_half = self._is_last and not self._survey.was_clean
        if may_be_half and is_unfinished(file.read, place, file.size, offset):
            what, remedy = f"a batch is there of which {damage.size} bytes were written", _CUT
            if self._survey.in_use:
                what, remedy = "a batch is there that is just being written", "nothing has to be done"
            return Finding(self._path, what, remedy, byte=place, offset=offset, is_fault=False)
        what = f"{damage.reason}, and nothing is known of the {damage.size} bytes from there to the end of the file"
        remedy = f"what they held from offset {offset} on is lost; {_COPY}"
        return Finding(self._path, what, remedy, byte=place, offset=offset)
