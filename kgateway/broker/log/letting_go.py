"""
Lets the oldest segments of a partition go: at once for those who look for them, and their files later.

A file gets a name that ends in `.deleted`, as in Kafka, and is removed after `file.delete.delay.ms`, so that whoever
has it open can read on. What a process leaves of this, the next one removes.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple

from twisted.internet.interfaces import IDelayedCall
from twisted.logger import Logger
from twisted.python.failure import Failure

from kgateway.broker.log.disk import Disk
from kgateway.broker.log.found_files import SUFFIXES
from kgateway.broker.log.partition_log import PartitionLog
from kgateway.broker.log.parts import LogParts, plain
from kgateway.broker.log.segment import ANY_TIME, LET_GO, Segment
from kgateway.broker.retention import Piece
from kgateway.records.batch import NO_TIMESTAMP


class Age(NamedTuple):
    """
    From when a segment's records are: the largest timestamp, or where that is not known, when they were written.
    """

    size: int  # of the segment, as it was then
    largest_timestamp: int
    changed_ms: int

    @property
    def newest_ms(self) -> int:
        """
        From when its newest record is.
        """
        return self.largest_timestamp if self.largest_timestamp > NO_TIMESTAMP else self.changed_ms


class LettingGo:
    """
    That of one partition.
    """

    _log = Logger()

    def __init__(self, log: PartitionLog, parts: LogParts) -> None:
        self._segments = log
        self._parts = parts
        self._removals: list[IDelayedCall] = []
        self._stopped = False

    async def pieces(self) -> list[Piece]:
        """
        The segments, as retention sees them. What the files tell of them is read in a thread.
        """
        known = [*self._segments.segments]
        ages = await self._parts.in_thread(partial(_ages, self._parts.files.disk, known))
        now_ms, segments = self._parts.now_ms(), self._segments.segments
        ends = [*(segment.base_offset for segment in segments[1:]), self._segments.end_offset]
        return [_piece(segment, end, ages.get(segment), now_ms) for segment, end in zip(segments, ends, strict=True)]

    def drop(self, offset: int, delay_ms: int) -> None:
        """
        Nobody finds what is wholly before the offset any more.
        """
        gone = self._segments.let_go(offset)
        for segment in gone:
            self._parts.loaded.forget(segment)
            self._parts.files.close(segment.path)
        self.clear([segment.path.with_suffix(suffix) for segment in gone for suffix in SUFFIXES], delay_ms)

    def clear(self, paths: Sequence[Path], delay_ms: int = 0) -> None:
        """
        Let these files go.
        """
        if paths:
            self._parts.in_turns(self._rename(paths, delay_ms)).addErrback(self._complain)

    def stop(self) -> None:
        """
        Touch no file any more: there may soon be others of their names.
        """
        self._stopped = True
        for removal in self._removals:
            if removal.active():
                removal.cancel()

    def _rename(self, paths: Iterable[Path], delay_ms: int) -> Iterator[None]:
        """
        Not in a thread, which might come to it only when the topic has gone and another one has its name.
        """
        renamed = list[Path]()
        for path in paths:
            yield
            if self._stopped:
                return
            gone = path if path.name.endswith(LET_GO) else path.with_name(f"{path.name}{LET_GO}")
            with suppress(FileNotFoundError):
                if gone != path:
                    self._parts.files.disk.rename(path, gone)
                renamed.append(gone)
        removal = self._parts.clock.callLater(delay_ms / 1000, self._remove, renamed)
        self._removals = [*(earlier for earlier in self._removals if earlier.active()), removal]

    def _remove(self, paths: list[Path]) -> None:
        self._parts.in_thread(partial(_remove, self._parts.files.disk, paths)).addErrback(self._complain)

    def _complain(self, failure: Failure) -> None:
        if isinstance(failure.value, OSError):
            reason = plain(failure.value)
            self._log.warn("a deleted segment stays on disk until the next start: {reason}", reason=reason)
        else:
            self._log.failure("segments cannot be let go", failure)


def _ages(disk: Disk, segments: Sequence[Segment]) -> dict[Segment, Age]:
    return {segment: age_of(disk, segment, is_last=segment is segments[-1]) for segment in segments}


def age_of(disk: Disk, segment: Segment, *, is_last: bool = False) -> Age:
    """
    What the files tell of it.
    """
    size = segment.size
    # Of the last one it is in memory, and may change just now.
    largest = segment.largest_timestamp if is_last else segment.largest()
    if NO_TIMESTAMP < largest < ANY_TIME:
        return Age(size, largest, 0)
    return Age(size, NO_TIMESTAMP, disk.changed_ms(segment.path))


def _piece(segment: Segment, end: int, age: Age | None, now_ms: int) -> Piece:
    """
    One that was written to since its age was asked for is from now.
    """
    if age and age.size == segment.size:
        return Piece(segment.size, end, age.largest_timestamp, age.changed_ms)
    return Piece(segment.size, end, NO_TIMESTAMP, now_ms)


def _remove(disk: Disk, paths: Iterable[Path]) -> None:
    for path in paths:
        with suppress(FileNotFoundError):
            disk.remove(path)
