"""
Makes Kafka's offsets continue from one log file to the next.

Within a file messages are counted, beginning with the number of the first one. From one file to the next that number
may not continue:

 - A broker that was killed numbers messages again as if it had not numbered those that it has lost, or even some that
   are in files. The messages of such a file get the offsets after those that are known.
 - It may leave out numbers, too. Then so are Kafka's offsets, which consumers do not mind.
 - Of programs that publish at the same time, one may get its number before the others, and be slower to append its
   message. If the file ends between, the next one begins with a number that is too small or too large. How the file
   ends tells with which number it is counted.

What a file needs is stored before anybody reads it, so that it has the same offsets for ever. Only the gateway that
leads decides it; others read it.
"""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import NamedTuple

from twisted.logger import Logger

from kgateway.broker.seaweed.calls.retries import Precondition
from kgateway.broker.seaweedmq.files.log_files import LogFile, LogFiles
from kgateway.broker.seaweedmq.layout.offset_shifts import OffsetShift
from kgateway.broker.seaweedmq.layout.topic_file import PartitionFolder
from kgateway.wire.errors import Malformed

_MANY = 100  # files, of which it is worth telling that they are read


class ShownRun(NamedTuple):
    """
    Consecutive messages that consumers can have got before they were in files.
    """

    base_offset: int  # Kafka's
    times_ns: Sequence[int]  # by which they are recognized: no two messages of a partition have the same


class ShownEnd(NamedTuple):
    """
    The end of what consumers can have got.
    """

    offset: int  # Kafka's
    ts_ns: int  # of the last message before it
    runs: Sequence[ShownRun] = ()  # before the end

    def offset_of(self, ts_ns: int) -> int | None:
        """
        Kafka's offset of the message of this time, if it is in one of the runs.
        """
        for base_offset, times_ns in self.runs:
            place = bisect_left(times_ns, ts_ns)
            if place < len(times_ns) and times_ns[place] == ts_ns:
                return base_offset + place
        return None


class _Before(NamedTuple):
    """
    What is before a file.
    """

    end: int | None  # Kafka's offset after it; none if nothing is there
    number: int | None  # counted, of the next message; none if the file before is in another folder


class OffsetContinuity:
    _log = Logger()

    def __init__(
        self,
        files: LogFiles,
        precondition: Precondition,
        shown: Callable[[], ShownEnd | None],
        lost: Callable[[int], None],
    ) -> None:
        self._files = files
        self._precondition = precondition
        self._shown = shown
        self._lost = lost  # called with the offset after messages that consumers have got, and that are lost
        self._continued: dict[str, str] = {}  # the first chunks of files that were looked at, by their paths

    def skip(self, files: Sequence[LogFile]) -> None:
        """
        Do not look at these files, because another gateway has.
        """
        self._continued |= {file.path: file.first_chunk for file in files}

    async def continue_offsets(self, listing: Sequence[LogFile], folders: Sequence[PartitionFolder]) -> list[LogFile]:
        """
        The listed files, with offsets that continue.
        """
        found = list(listing)
        new = [index for index, file in enumerate(found) if self._continued.get(file.path) != file.first_chunk]
        if len(new) > _MANY:
            text = "looking in {count} log files of {folder} for numbers that were given again"
            self._log.info(text, count=len(new), folder=folders[-1].path)
        by_path = {folder.path: folder for folder in folders}
        for index in new:
            if await self._continue(found[index], found[:index]):
                found[index:] = [self._files.with_shift(file, by_path[file.folder.path]) for file in found[index:]]
        self._continued = {file.path: file.first_chunk for file in found}
        return found

    async def _continue(self, file: LogFile, before: Sequence[LogFile]) -> bool:
        """
        Store what the file needs to continue. Returns whether it needs anything. What was stored once is never changed:
        the file may have grown, and look otherwise now.
        """
        if file.first is not None:
            return False
        try:
            head = await self._files.head(file)
            end, number = await self._before(file, before)
        except Malformed:
            return False  # nothing of a damaged file is read; readers report it
        if head.says_offset:
            return False
        message, ts_ns = head.entry.offset, head.entry.ts_ns
        first = message
        if number is not None and number != message and await self._is_counted_from(file, number):
            first = number
        shift = self._offset(ts_ns, first + file.folder.shift, end) - first
        if shift == file.folder.shift and message == first == (message if number is None else number):
            return False
        await self._files.add_shift(file.folder, OffsetShift(file.name, shift, first), self._precondition)
        return True

    def _offset(self, ts_ns: int, offset: int, end: int | None) -> int:
        """
        Kafka's offset of the first message of a file, which was published at this time, and would have this offset;
        what is before it has this end.
        """
        end, shown = offset if end is None else end, self._shown()
        known = shown.offset_of(ts_ns) if shown else None
        least = shown.offset if shown and ts_ns > shown.ts_ns else known
        if least is not None and end < least:
            self._lost(least)
        return max(offset, end, least or 0) if known is None else known

    async def _before(self, file: LogFile, before: Sequence[LogFile]) -> _Before:
        number = None
        for each in reversed(before):
            last = await self._files.last(each)
            if each is before[-1] and each.folder.path == file.folder.path:
                number = last.number
            if last.placed:
                return _Before(last.placed.offset + last.placed.span, number)
        return _Before(None, number)

    async def _is_counted_from(self, file: LogFile, first: int) -> bool:
        """
        Whether the last message of the file is where it should be if the first one has this number.
        """
        last, message = await self._files.last(file), await self._files.first_message(file)
        return first + last.number - message - 1 == last.message_offset
