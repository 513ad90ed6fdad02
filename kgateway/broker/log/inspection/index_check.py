"""
Checks the indexes of a segment against its batches, one batch after the other.

An entry of the offset index has the last offset of a batch and its position; an entry of the time index has the largest
timestamp so far and the last offset of its batch. Kafka may write a later offset in the former, and in the latter that
of the record.
"""

import struct
from itertools import pairwise
from pathlib import Path

from kgateway.broker.log.inspection.findings import Finding, Survey
from kgateway.broker.log.segments.index import OFFSETS, TIMES
from kgateway.broker.log.segments.segment import largest_timestamp
from kgateway.plurals import counted
from kgateway.records.batch import NO_TIMESTAMP, BatchHeader

_REMEDY = "remove this file while the gateway is stopped: it is rebuilt from the batches"
_LATER = "no action is needed: it is rebuilt when its partition is next opened after a restart"
_NEVER = (1 << 63) - 1


class IndexCheck:
    """
    One index file. The finding names the first wrong entry, and counts the others.
    """

    entry: struct.Struct

    def __init__(self, survey: Survey, path: Path, base_offset: int, *, is_last: bool) -> None:
        self._survey = survey
        self._path = path
        self._base_offset = base_offset
        self._is_last = is_last
        self._wrong: list[tuple[int, str]] = []
        self._number = 0
        try:
            data = survey.read(path)
            self.is_missing = False
        except FileNotFoundError:
            data = b""
            self.is_missing = True
        self.entries = list(self.entry.iter_unpack(data[: len(data) - len(data) % self.entry.size]))
        self._left_over = len(data) % self.entry.size
        if is_last and not survey.is_ours:
            while self.entries and not any(self.entries[-1]):
                self.entries.pop()  # Kafka gives the file its full size at once
        for number, (before, after) in enumerate(pairwise(self.entries), 1):
            if after[0] < before[0] or after[1] <= before[1]:
                self._is_wrong(number, f"it has {_shown(after)} after {_shown(before)}")

    def _is_wrong(self, number: int, what: str) -> None:
        self._wrong.append((number, what))

    def finding(self, size: int) -> Finding | None:
        """
        What is wrong with the file, given the size of its log.
        """
        if self.is_missing:
            is_needed = size and (self._survey.was_clean or not self._is_last)  # else there was no time to write it
            return Finding(self._path, "it is missing", _LATER) if is_needed and self._survey.is_ours else None
        if self._wrong:
            number, what = min(self._wrong)
            more = len({number for number, _ in self._wrong}) - 1
            rest = f"; so {'is' if more == 1 else 'are'} {more} more" if more else ""
            told = f"entry {number} of {len(self.entries)} is wrong, {what}{rest}"
            return Finding(self._path, told, _REMEDY, byte=number * self.entry.size)
        if self._left_over and not self._survey.in_use:
            told = f"its last {counted(self._left_over, 'byte')} cannot be an entry"
            return Finding(self._path, told, _REMEDY, byte=len(self.entries) * self.entry.size)
        return None


class OffsetIndexCheck(IndexCheck):
    """
    An offset index. `next` is the position in the log from which on it has to be asked again.
    """

    entry = OFFSETS

    def __init__(self, survey: Survey, path: Path, base_offset: int, *, is_last: bool) -> None:
        super().__init__(survey, path, base_offset, is_last=is_last)
        self.next = self._position()

    def _position(self) -> int:
        return int(self.entries[self._number][1]) if self._number < len(self.entries) else _NEVER

    def meet(self, header: BatchHeader, position: int) -> None:
        """
        Compare with a batch that begins at this position.
        """
        while self.next < position + header.size:
            told = self.entries[self._number][0] + self._base_offset
            last, ours = header.last_offset, self._survey.is_ours
            if self.next != position:
                where = f"the batch at byte {position}" if self.next > position else "an earlier batch"
                self._is_wrong(self._number, f"it points to byte {self.next}, into {where}")
            elif told < last or (told > last and ours):
                self._is_wrong(self._number, f"it has offset {told}, but the batch there ends with {last}")
            self._step()

    def _step(self) -> None:
        self._number += 1
        self.next = self._position()

    def skip(self, position: int) -> None:
        """
        Skip the entries for damage that ends at this position.
        """
        while self.next < position:
            self._step()

    def end(self, position: int) -> None:
        if self._number < len(self.entries) and not (self._is_last and self._survey.in_use):
            for number in range(self._number, len(self.entries)):
                self._is_wrong(number, f"it points to byte {self.entries[number][1]}, but the log ends at {position}")


class TimeIndexCheck(IndexCheck):
    """
    A time index. `next` is the offset from which on it has to be asked again.
    """

    entry = TIMES

    def __init__(self, survey: Survey, path: Path, base_offset: int, *, is_last: bool) -> None:
        super().__init__(survey, path, base_offset, is_last=is_last)
        self.largest = NO_TIMESTAMP
        self._largest_offset = base_offset
        self.next = self._offset()

    def _offset(self) -> int:
        return int(self.entries[self._number][1]) + self._base_offset if self._number < len(self.entries) else _NEVER

    def later(self, header: BatchHeader) -> None:
        """
        Note a batch that may have a later timestamp than all before it.
        """
        largest = largest_timestamp(header)
        if largest > self.largest:
            self.largest, self._largest_offset = largest, header.last_offset

    def meet(self, header: BatchHeader, *, is_known: bool) -> None:
        """
        Compare with a batch that reaches the offset of the next entry; `is_known` says that no damage was before it.
        """
        while self.next <= header.last_offset:
            timestamp, largest = self.entries[self._number][0], largest_timestamp(header)
            is_here = self.next == header.last_offset or (self.next >= header.base_offset and not self._survey.is_ours)
            if not is_here:
                if is_known or self.next >= header.base_offset:
                    self._is_wrong(self._number, f"it has offset {self.next}, which is not the last one of any batch")
            elif timestamp != largest:
                self._is_wrong(
                    self._number, f"it has timestamp {timestamp} for offset {self.next}, but {largest} is there"
                )
            elif self.largest > timestamp:
                self._is_wrong(self._number, f"it has timestamp {timestamp}, but {self.largest} is before it")
            self._number += 1
            self.next = self._offset()

    def end(self, next_offset: int) -> None:
        if self.is_missing or (self._is_last and self._survey.in_use):
            return
        for number in range(self._number, len(self.entries)):
            told = self.entries[number][1] + self._base_offset
            self._is_wrong(number, f"it has offset {told}, but the log ends at {next_offset}")
        last = self.entries[-1][0] if self.entries else NO_TIMESTAMP
        if not self._wrong and not self._is_last and self.largest > last:
            told = f"no timestamp after {last}, but offset {self._largest_offset} has {self.largest}"
            self._is_wrong(max(len(self.entries) - 1, 0), f"it has {told}")


def _shown(entry: tuple[int, ...]) -> str:
    return f"({entry[0]}, {entry[1]})"
