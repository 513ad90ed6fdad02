"""
The log files of one partition, as they were listed last, oldest first.

A broker writes a file for each flush interval, named after the second of the first message in it, and may append to the
newest. A file never changes otherwise. Another file of the same name is known by its first chunk, or because it is
smaller than the first one was. Only the first message that has an offset of Kafka's says with which one a file begins.
So the file of an offset is found by bisection, beginning where the ledger says, and what was found is remembered. A
file that does not say its first offset, because it is damaged there or others have written all of it, belongs to the
one before it.

Messages of other programs, in a topic whose format has no place for them, are logged once and skipped, so that they
hold up no message after them: they have none of Kafka's offsets, and nothing of Kafka's is lost with them. A damaged
message of ours is something else: its offsets are missing without it, so a reader stops there.
"""

from bisect import bisect_right
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import aclosing, suppress
from functools import partial
from itertools import islice
from typing import NamedTuple

from twisted.logger import Logger

from kgateway.broker.seaweed.calls.retries import Precondition
from kgateway.broker.seaweed.cluster import SeaweedCluster
from kgateway.broker.seaweed.filer.content import FileNotFound
from kgateway.broker.seaweed.filer.filer import Filer
from kgateway.broker.seaweed.protos.filer_pb2 import Entry as FilerEntry
from kgateway.broker.seaweedmq.files.message_ranges import MessageRange, read_range, read_ranges
from kgateway.broker.seaweedmq.formats.format import (
    MessageFormat,
    PlacedMessage,
    Report,
    SkippedMessage,
    raise_unless_repeated,
)
from kgateway.broker.seaweedmq.formats.log_entry import LoggedMessage
from kgateway.broker.seaweedmq.formats.log_order import NEIGHBOURS, counted, places
from kgateway.broker.seaweedmq.layout.offset_shifts import (
    SHIFTS,
    OffsetShift,
    encode_shifts,
    first_of,
    read_shifts,
    shift_of,
    with_shift,
)
from kgateway.broker.seaweedmq.layout.topic_file import PartitionFolder
from kgateway.broker.seaweedmq.layout.topic_paths import is_log_file, log_name
from kgateway.broker.seaweedmq.ledger.ledger import Ledger
from kgateway.cluster.partition import EARLIEST_OFFSET
from kgateway.log_messages import FOREIGN_MESSAGE, FOREIGN_MESSAGES
from kgateway.wire.errors import Malformed

_REPORTED_MAX = 100  # of one partition


class ForeignMessages:
    """
    The messages of other programs in one partition.
    """

    _log = Logger()

    def __init__(self) -> None:
        self._reported: set[tuple[str, int]] = set()

    def report(self, folder: PartitionFolder) -> Report:
        return partial(self._report, folder.path)

    def _report(self, path: str, left_out: SkippedMessage) -> None:
        if not left_out.is_foreign:
            raise_unless_repeated(left_out)
        elif (path, left_out.offset) not in self._reported and len(self._reported) < _REPORTED_MAX:
            self._reported.add((path, left_out.offset))
            message = FOREIGN_MESSAGES if len(self._reported) == _REPORTED_MAX else FOREIGN_MESSAGE
            self._log.warn(message, offset=left_out.offset, path=path, reason=left_out.reason)


_BATCHES_BYTES = 4 << 20  # that are read together
_RECORDS_BYTES = 1 << 20  # the same, if each message is to be taken apart
TIMESTAMP_MAX = 253_402_300_799_000  # the last second that the name of a file can say
_FIRST_BYTES = 1 << 16  # of a file, in which its first message mostly is
_LAST_BYTES = 1 << 20  # of a chunk, of which only the last message is looked at
_MILLISECOND_NS = 1_000_000
_NEAR = 2 * NEIGHBOURS  # messages that tell the place of one among them
_NO_SHIFT = 1 << 64


class LogFile(NamedTuple):
    """
    A file, as large as it was when it was listed.
    """

    path: str
    size: int
    changed_s: int
    folder: PartitionFolder
    first_chunk: str  # tells it from another file of its path
    last_chunk: int  # its position, where a message begins: each flush adds a chunk
    first: int | None  # the number with which its first message is counted, if it is stored

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]

    def has_become(self, later: "LogFile") -> bool:
        """
        Whether this is the same file with the same offsets; it may have grown.
        """
        is_same = self.first_chunk == later.first_chunk and self.size <= later.size
        return is_same and (self.folder.shift, self.first) == (later.folder.shift, later.first)


class FileHead(NamedTuple):
    """
    The first message of a file.
    """

    entry: LoggedMessage  # with its own offset
    says_offset: bool  # of Kafka's


class FileEnd(NamedTuple):
    message_offset: int  # of its last message, as the broker counts
    ts_ns: int  # of that message
    placed: PlacedMessage | None  # the last message that has offsets of Kafka's; others may follow
    shift: int  # Kafka's offsets minus the numbers of messages, after it
    number: int  # counted, of the next message in this file


class LogFiles:
    """
    The files of one partition. Raises FileNotFound if a file is not as it was listed.
    """

    def __init__(self, seaweed: SeaweedCluster, message_format: MessageFormat) -> None:
        self.listed: Sequence[LogFile] = ()
        self.range_bytes = _BATCHES_BYTES if message_format.batched else _RECORDS_BYTES
        self._seaweed = seaweed
        self._format = message_format
        self._firsts: dict[str, int] = {}  # Kafka's offset of the first message in a file, by its path
        self._first_messages: dict[str, int] = {}  # and its number
        self._without: dict[str, int] = {}  # by path: before this byte nothing has an offset of Kafka's
        self._lasts: dict[str, tuple[LogFile, FileEnd]] = {}
        self._foreign = ForeignMessages()
        self._shifts: dict[str, Sequence[OffsetShift]] = {}  # by the path of their folder

    async def refresh(self, folders: Sequence[PartitionFolder]) -> list[str]:
        """
        List the files; the paths of those listed before that are gone, or replaced.
        """
        return self.adopt(await self.listing(folders))

    async def listing(self, folders: Sequence[PartitionFolder]) -> list[LogFile]:
        """
        The files as they are now.
        """
        filer, found = await self._seaweed.filer(), list[LogFile]()
        for folder in folders:
            entries = await filer.all_entries(folder.path)
            await self._read_shifts(filer, folder, entries)
            for entry in entries:
                if not entry.is_directory and is_log_file(entry.name) and entry.attributes.file_size:
                    found.append(self.with_shift(_listed(folder, entry), folder))
        return found

    def with_shift(self, file: LogFile, folder: PartitionFolder) -> LogFile:
        """
        A file of this folder with the shift and the number of its first message that are stored for it.
        """
        shift = self.shift_of(folder, file.name)
        first = first_of(file.name, self._shifts.get(folder.path, ()))
        return file._replace(folder=folder._replace(shift=shift), first=first)

    def adopt(self, found: Sequence[LogFile]) -> list[str]:
        """
        Use these files from now on; the paths of those used before that are gone, or replaced.
        """
        now = {file.path: file for file in found}
        gone = [file.path for file in self.listed if file.path not in now or not file.has_become(now[file.path])]
        self.listed = found
        self._forget(gone)
        return gone

    def shift_of(self, folder: PartitionFolder, name: str) -> int:
        """
        The shift with which messages are read in the file of this name.
        """
        return shift_of(name, self._shifts.get(folder.path, ()), folder.shift)

    async def add_shift(self, folder: PartitionFolder, added: OffsetShift, precondition: Precondition) -> None:
        """
        Read messages with another shift from one file on; it is stored first.
        """
        listed = [file.name for file in self.listed if file.folder.path == folder.path]
        shifts = with_shift(_shifts_since(min(listed, default=""), self._shifts.get(folder.path, ())), added)
        await (await self._seaweed.filer()).write(f"{folder.path}/{SHIFTS}", encode_shifts(shifts), precondition)
        self._shifts[folder.path] = shifts

    async def _read_shifts(self, filer: Filer, folder: PartitionFolder, entries: Sequence[FilerEntry]) -> None:
        for entry in entries:
            if entry.name == SHIFTS:
                content = await filer.content_of(f"{folder.path}/{SHIFTS}", entry)
                self._shifts[folder.path] = read_shifts(content)

    def _forget(self, gone: Sequence[str]) -> None:
        for path in gone:
            self._firsts.pop(path, None)
            self._first_messages.pop(path, None)
            self._without.pop(path, None)
            self._lasts.pop(path, None)

    def report(self, folder: PartitionFolder) -> Report:
        """
        The report of skipped messages in this folder, for formats.
        """
        return self._foreign.report(folder)

    async def first_offset(self, file: LogFile) -> int | None:
        """
        Kafka's offset of the file's first message that has one; `None` if none has.
        """
        known = self._firsts.get(file.path)
        if known is None and (placed := await self._first_placed(file)):
            known = self._firsts[file.path] = placed.offset
        return known

    async def first_message(self, file: LogFile) -> int:
        """
        The number of the first message.
        """
        if file.path not in self._first_messages:
            await self._first_entries(file)
        return self._first_messages[file.path]

    async def head(self, file: LogFile) -> FileHead:
        found = await read_range(lambda *span: self._read(file, *span), 0, file.size, _FIRST_BYTES)
        entry = next(found.messages())
        return FileHead(entry, self._format.shift_after([entry], _NO_SHIFT) != _NO_SHIFT)

    async def last(self, file: LogFile) -> FileEnd:
        """
        The end of the file. Only what was added since the last look is read; of batches, which need not be counted,
        only the last chunk.
        """
        known, before = self._lasts.get(file.path), None
        if known and known[0] == file:
            return known[1]
        seen, shift, number = 0, file.folder.shift, file.first
        if known and known[0].has_become(file):
            seen, before = known[0].size, known[1]
            shift, number = before.shift, before.number
        start = max(seen, file.last_chunk) if self._format.batched else seen
        try:
            entries, count, first = await self._last_entries(file, start)
        except Malformed:
            if start == seen:
                raise
            entries, count, first = await self._last_entries(file, seen)  # it was rewritten in other chunks
        number = first if number is None else number
        near = list(self._counted(entries, number + count - len(entries)))
        shift_near = await self._shift_before(file, near, seen, shift, number)
        placed = self._last_of(near, shift_near, file) or await self._last_placed(file, seen, shift)
        if placed is None and before:
            placed = before.placed
        message_offset = places([entry.offset for entry in entries])[-1]
        shift_after = self._format.shift_after(near, shift_near)
        last = FileEnd(message_offset, near[-1].ts_ns, placed, shift_after, number + count)
        self._lasts[file.path] = file, last
        return last

    async def has_number(self, file: LogFile, number: int) -> bool:
        """
        Whether the broker has given this number to a message in the file.
        """
        async with aclosing(self.ranges(file)) as ranges:
            async for found in ranges:
                if any(entry.offset == number for entry in found.messages()):
                    return True
        return False

    def messages(self, found: MessageRange, number: int | None) -> Iterable[LoggedMessage]:
        """
        The messages of a range with consecutive numbers, beginning with this one; for a file's first range it is None,
        or what the file says.
        """
        return self._counted(found.messages(), number)

    async def from_offset(self, offset: int, ledger: Ledger | None = None) -> Sequence[LogFile]:
        """
        The last file that is known to begin with Kafka's offset or before it, and those after it.
        """
        files = self.listed
        named = _named_by_ledger(files, offset, ledger) if ledger else ()
        low, high = 0, len(files)
        while high - low > 1:
            middle = next((index for index in named if low < index < high), (low + high) // 2)
            first = await self._first_known(files[middle:high])
            if first is not None and first <= offset:
                low = middle
            else:
                high = middle
        return files[low:]

    def published_before(self, timestamp: int) -> LogFile | None:
        """
        The last file before which nothing was published at this time, in milliseconds, or later.
        """
        files = self.listed
        name = log_name(min(max(timestamp, 0), TIMESTAMP_MAX) * _MILLISECOND_NS)
        # The second of its name may have begun before the file did.
        index = bisect_right(files, name, key=lambda file: file.name) - 2
        return files[max(index, 0)] if files else None

    async def range_at(self, file: LogFile, start: int) -> MessageRange:
        return await read_range(lambda *span: self._read(file, *span), start, file.size, self.range_bytes)

    def ranges(self, file: LogFile, start: int = 0) -> AsyncGenerator[MessageRange, None]:
        return read_ranges(lambda *span: self._read(file, *span), start, file.size, self.range_bytes)

    async def _first_known(self, files: Sequence[LogFile]) -> int | None:
        """
        The first of Kafka's offsets that one of these files says.
        """
        for file in files:
            with suppress(Malformed):
                first = await self.first_offset(file)
                if first is not None:
                    return first
        return None

    async def _first_placed(self, file: LogFile) -> PlacedMessage | None:
        folder, report, without = file.folder, self.report(file.folder), self._without.get(file.path, 0)
        if not without:
            for placed in self._format.walk(await self._first_entries(file), folder.shift, EARLIEST_OFFSET, report):
                return placed
        async with aclosing(self.ranges(file, without)) as ranges:
            async for messages in ranges:
                for found in self._format.walk(messages.messages(), folder.shift, report=report):
                    return found
        self._without[file.path] = file.size
        return None

    async def _last_placed(self, file: LogFile, start: int, shift: int) -> PlacedMessage | None:
        """
        The last message after this position that has offsets of Kafka's. Where messages are counted, all have.
        """
        last, end = None, EARLIEST_OFFSET
        async for found in self.ranges(file, start):
            for last in self._format.walk(found.messages(), shift, end, self.report(file.folder)):
                end = last.offset + last.span
        return last

    def _last_of(self, entries: list[LoggedMessage], shift: int, file: LogFile) -> PlacedMessage | None:
        placed = list(self._format.walk(entries, shift, EARLIEST_OFFSET, self.report(file.folder)))
        return placed[-1] if placed else None

    async def _shift_before(
        self, file: LogFile, entries: list[LoggedMessage], start: int, shift: int, number: int
    ) -> int:
        """
        The shift with which these entries at the end of the file are read. If they are all of other programs, what
        stands before them is read, from this position on, where the shift and the number of the message were these.
        """
        if not self._format.shifts or self._format.shift_after(entries, _NO_SHIFT) != _NO_SHIFT:
            return shift
        async for found in self.ranges(file, start):
            before = list(self.messages(found, number))
            number += len(before)
            shift = self._format.shift_after(before, shift)
        return shift

    async def _first_entries(self, file: LogFile) -> list[LoggedMessage]:
        found = await read_range(lambda *span: self._read(file, *span), 0, file.size, _FIRST_BYTES)
        first = list(islice(self.messages(found, file.first), _NEAR))
        self._first_messages[file.path] = first[0].offset
        return first

    async def _last_entries(self, file: LogFile, start: int) -> tuple[list[LoggedMessage], int, int]:
        """
        The last messages after this position, as their broker has numbered them; how many there are; and the offset of
        the first one.
        """
        first, total = None, 0
        while True:
            found = await read_range(lambda *span: self._read(file, *span), start, file.size, _LAST_BYTES)
            if first is None:
                first = next(found.messages()).offset
            entries, count = found.last(_NEAR)
            total += count
            if found.stop == file.size:
                return entries, total, first
            start = found.stop

    def _counted(self, entries: Iterable[LoggedMessage], number: int | None) -> Iterable[LoggedMessage]:
        return entries if self._format.batched else counted(entries, number)

    async def _read(self, file: LogFile, start: int, stop: int) -> bytes:
        data = await (await self._seaweed.filer()).files.read(file.path, start, stop)
        if len(data) != stop - start:
            raise FileNotFound(file.path, f"it ends before byte {stop}, but was listed with a size of {file.size}")
        return data


def _listed(folder: PartitionFolder, entry: FilerEntry) -> LogFile:
    attributes, path = entry.attributes, f"{folder.path}/{entry.name}"
    chunks = entry.chunks
    first_chunk, last_chunk = (chunks[0].file_id, chunks[-1].offset) if chunks else ("", 0)
    return LogFile(path, attributes.file_size, attributes.mtime, folder, first_chunk, last_chunk, None)


def _shifts_since(name: str, shifts: Sequence[OffsetShift]) -> Sequence[OffsetShift]:
    """
    The shifts of the file of this name and those after it.
    """
    return shifts[max(bisect_right(shifts, name, key=lambda each: each.name) - 1, 0) :]


def _named_by_ledger(files: Sequence[LogFile], offset: int, ledger: Ledger) -> Sequence[int]:
    """
    The index of the file that the ledger names, and those next to it.
    """
    found = ledger.at(offset)
    folders = {file.folder.path for file in files if found and found.section[1:] == file.folder[-2:]}
    if not found or not folders:
        return ()
    path = f"{min(folders)}/{log_name(found.ts_ns)}"
    index = bisect_right(files, path, key=lambda file: file.path) - 1
    return index, index + 1, index - 1
