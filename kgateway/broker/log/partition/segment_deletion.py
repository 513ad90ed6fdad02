"""
Deletes old segments of a partition: at once for readers, and later from the disk.

A file is renamed to `....deleted`, as in Kafka, and removed after `file.delete.delay.ms`, so that whoever has it open
can read on. The next start removes the files that a process leaves.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from twisted.internet.interfaces import IDelayedCall
from twisted.logger import Logger
from twisted.python.failure import Failure

from kgateway.broker.log.files.disk import Disk
from kgateway.broker.log.runtime import LogRuntime, describe_error
from kgateway.broker.log.segments.file_names import DELETED_SUFFIX, SUFFIXES
from kgateway.broker.log.segments.segment import ANY_TIME, Segment
from kgateway.broker.log.segments.segment_list import SegmentList
from kgateway.broker.partition.retention import Deletable
from kgateway.log_messages import CANNOT_DELETE_SEGMENTS, SEGMENT_STAYS
from kgateway.records.batch import NO_TIMESTAMP


class SegmentDeletion:
    _log = Logger()

    def __init__(self, segment_list: SegmentList, runtime: LogRuntime) -> None:
        self._segment_list = segment_list
        self._runtime = runtime
        self._removals: list[IDelayedCall] = []
        self._stopped = False

    async def pieces(self) -> list[Deletable]:
        """
        The segments, as retention sees them. Their files are read in a thread.
        """
        known = [*self._segment_list.segments]
        read = await self._runtime.in_thread(partial(_pieces, self._runtime.files.disk, known))
        now_ms, segments = self._runtime.now_ms(), self._segment_list.segments
        ends = [*(segment.base_offset for segment in segments[1:]), self._segment_list.end_offset]
        return [_piece(segment, end, read.get(segment), now_ms) for segment, end in zip(segments, ends, strict=True)]

    def drop(self, offset: int, delay_ms: int) -> None:
        """
        Delete the segments that are wholly before the offset.
        """
        gone = self._segment_list.drop_before(offset)
        for segment in gone:
            self._runtime.loaded.forget(segment)
            self._runtime.files.close(segment.path)
        self.clear([segment.path.with_suffix(suffix) for segment in gone for suffix in SUFFIXES], delay_ms)

    def clear(self, paths: Sequence[Path], delay_ms: int = 0) -> None:
        """
        Rename these files, and remove them after the delay.
        """
        if paths:
            self._runtime.in_turns(self._rename(paths, delay_ms)).addErrback(self._complain)

    def stop(self) -> None:
        """
        Touch no file any more: a new topic may soon have files of the same names.
        """
        self._stopped = True
        for removal in self._removals:
            if removal.active():
                removal.cancel()

    def _rename(self, paths: Iterable[Path], delay_ms: int) -> Iterator[None]:
        """
        Rename on the reactor: a thread might do it late, when another topic of this name has files of these names.
        """
        renamed = list[Path]()
        for path in paths:
            yield
            if self._stopped:
                return
            gone = path if path.name.endswith(DELETED_SUFFIX) else path.with_name(f"{path.name}{DELETED_SUFFIX}")
            with suppress(FileNotFoundError):
                if gone != path:
                    self._runtime.files.disk.rename(path, gone)
                renamed.append(gone)
        removal = self._runtime.clock.callLater(delay_ms / 1000, self._remove, renamed)
        self._removals = [*(earlier for earlier in self._removals if earlier.active()), removal]

    def _remove(self, paths: list[Path]) -> None:
        self._runtime.in_thread(partial(_remove, self._runtime.files.disk, paths)).addErrback(self._complain)

    def _complain(self, failure: Failure) -> None:
        if isinstance(failure.value, OSError):
            self._log.warn(SEGMENT_STAYS, reason=describe_error(failure.value))
        else:
            self._log.failure(CANNOT_DELETE_SEGMENTS, failure)


def _pieces(disk: Disk, segments: Sequence[Segment]) -> dict[Segment, Deletable]:
    return {segment: read_piece(disk, segment, is_last=segment is segments[-1]) for segment in segments}


def read_piece(disk: Disk, segment: Segment, *, is_last: bool = False) -> Deletable:
    size = segment.size
    # The active segment has it in memory, and it may change just now.
    largest = segment.largest_timestamp if is_last else segment.largest()
    if NO_TIMESTAMP < largest < ANY_TIME:
        return Deletable(size, segment.next_offset, largest)
    return Deletable(size, segment.next_offset, NO_TIMESTAMP, disk.changed_ms(segment.path))


def _piece(segment: Segment, end: int, read: Deletable | None, now_ms: int) -> Deletable:
    """
    A segment that was written to since its timestamps were read counts as new.
    """
    if read and read.size == segment.size:
        return read._replace(end=end)
    return Deletable(segment.size, end, NO_TIMESTAMP, now_ms)


def _remove(disk: Disk, paths: Iterable[Path]) -> None:
    for path in paths:
        with suppress(FileNotFoundError):
            disk.remove(path)
