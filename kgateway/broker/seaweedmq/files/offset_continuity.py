"""
Makes Kafka's offsets continue from one log file to the next.

Within a file messages are counted, beginning with the number of the first one. From one file to the next that number
may not continue:

 - A broker that was killed numbers messages again as if it had not numbered those that it has lost, or even some that
   are in files. The messages of such a file get the offsets after those that are known.
 - It may leave out numbers, too. Then Kafka's offsets are left out with them; consumers skip such a gap.
 - Of programs that publish at the same time, one may get its number before the others, and be slower to append its
   message. If the file ends between, the next one begins with a number that is too small or too large. The end of that
   file tells from which number its messages are counted.

What a file needs is stored before any client reads the file, so that its messages have the same offsets for ever. Only
the gateway that leads decides this; others read what is stored.
"""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import NamedTuple

from twisted.logger import Logger

from kgateway.broker.seaweed.calls.retries import Precondition
from kgateway.broker.seaweedmq.files.log_files import FileEnd, LogFile, LogFiles
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

    def has_run_from(self, offset: int) -> bool:
        """
        Whether all messages from this offset on are in the runs.
        """
        return bool(self.runs) and self.runs[0].base_offset <= offset < self.offset

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

    end: int | None = None  # Kafka's offset after it; none if nothing is there
    number: int | None = None  # counted, of the message after it
    next_message: int | None = None  # the number that the broker gives to the message after it


class OffsetContinuity:
    """
    Checks the new files of one partition, for the gateway that leads.
    """

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
        self._checked: dict[str, str] = {}  # the first chunks of checked files, by their paths

    def mark_checked(self, files: Sequence[LogFile]) -> None:
        """
        Note that another gateway has checked these files.
        """
        self._checked |= {file.path: file.first_chunk for file in files}

    async def continue_offsets(self, listing: Sequence[LogFile], folders: Sequence[PartitionFolder]) -> list[LogFile]:
        """
        The listed files, with offsets that continue.
        """
        found = list(listing)
        new = [index for index, file in enumerate(found) if self._checked.get(file.path) != file.first_chunk]
        if len(new) > _MANY:
            text = "checking the offsets of {count} log files, of {folder} and before"
            self._log.info(text, count=len(new), folder=folders[-1].path)
        by_path = {folder.path: folder for folder in folders}
        for index in new:
            file = found[index]
            if await self._continue(file, found[:index]):
                found[index:] = [self._files.with_shift(each, by_path[each.folder.path]) for each in found[index:]]
            self._checked[file.path] = file.first_chunk
        self._checked = {file.path: file.first_chunk for file in found}
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
        except Malformed:
            return False  # nothing of it is read; readers report it
        if head.says_offset:
            return False
        broker_offset = head.entry.offset
        known = await self._before(file, before)
        first = await self._first_number(file, broker_offset, known.number)
        offset = first + file.folder.shift
        if known.end is not None and known.next_message is not None:
            # Numbers that were left out between the files, and not those that are missing within the one before.
            left_out = broker_offset - known.next_message if first == broker_offset else 0
            offset = known.end + max(left_out, 0)
        shift = self._offset(head.entry.ts_ns, offset, known.end) - first
        continues = first == broker_offset and known.number in (None, broker_offset)
        if continues and shift == file.folder.shift:
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
        is_after = shown and (ts_ns > shown.ts_ns or (known is None and shown.has_run_from(end)))
        least = shown.offset if shown and is_after else known
        if least is not None and end < least:
            self._lost(least)
        return max(offset, end, least or 0) if known is None else known

    async def _before(self, file: LogFile, before: Sequence[LogFile]) -> _Before:
        found = _Before(number=file.folder.first_message)
        for each in reversed(before):
            last = await self._last(each)
            if each is before[-1] and each.folder.path == file.folder.path:
                has_shift = last and each.folder.shift == file.folder.shift
                next_message = last.message_offset + 1 if last and has_shift else None
                found = _Before(None, last.number if last else None, next_message)
            if last and last.placed:
                return found._replace(end=last.placed.offset + last.placed.span)
        return found

    async def _last(self, file: LogFile) -> FileEnd | None:
        """
        The end of the file; none if it is damaged.
        """
        try:
            return await self._files.last(file)
        except Malformed:
            return None

    async def _first_number(self, file: LogFile, broker_offset: int, number: int | None) -> int:
        """
        The number from which the messages of the file are counted: this one, if the last message is where it should be
        then, or if the message with this number is in the file; or else the one that the broker has given.
        """
        last = await self._last(file) if number is not None and number != broker_offset else None
        if number is None or last is None:
            return broker_offset
        if number + last.number - broker_offset - 1 == last.message_offset:
            return number
        return number if number < broker_offset and await self._files.has_number(file, number) else broker_offset
