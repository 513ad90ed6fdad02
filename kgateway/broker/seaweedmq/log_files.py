"""
The log files of one partition, as they were listed last, oldest first.

A broker writes a file for each interval of its flushes, named after the second of the first message in it, and may add
to the newest. A file never changes otherwise; where the name is that of another file, its first chunk tells, or that it
is smaller than it was. Which of Kafka's offsets a file begins with, only its first message says that has one; so it is
found by bisection, beginning where the ledger says, and what was found out once is remembered. A file that does not say
it, for it is damaged there or others have written all that is in it, belongs to the one before it.
"""

from bisect import bisect_right
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, suppress
from typing import NamedTuple

from kgateway.broker.seaweed.filer_files import NotThere
from kgateway.broker.seaweed.protos.filer_pb2 import Entry as FilerEntry
from kgateway.broker.seaweed.seaweed import Seaweed
from kgateway.broker.seaweedmq.folders import Folder
from kgateway.broker.seaweedmq.forms.form import Form, Placed, Report
from kgateway.broker.seaweedmq.layout import is_log_file, log_name
from kgateway.broker.seaweedmq.ledger import Ledger
from kgateway.broker.seaweedmq.log_entries import Entry
from kgateway.broker.seaweedmq.message_ranges import MessageRange, read_range, read_ranges
from kgateway.broker.seaweedmq.passed_over import PassedOver
from kgateway.cluster.partition import EARLIEST_OFFSET
from kgateway.wire.malformed import Malformed

_BATCHES_BYTES = 4 << 20  # that are read at once
_RECORDS_BYTES = 1 << 20  # the same, where each message is to be taken apart
TIMESTAMP_MAX = 253_402_300_799_000  # the last second that the name of a file can say
_FIRST_BYTES = 1 << 16  # of a file, in which its first message mostly is
_LAST_BYTES = 1 << 20  # of a chunk, of which only the last message is looked at
_MILLISECOND_NS = 1_000_000


class LogFile(NamedTuple):
    """
    One file, as large as it was when it was listed.
    """

    path: str
    size: int
    changed_s: int
    folder: Folder
    first_chunk: str  # by which it is told from another of its path
    last_chunk: int  # where that begins, and so a message: each flush adds a chunk

    def has_become(self, later: "LogFile") -> bool:
        """
        Whether it is the same file, which may have grown.
        """
        return self.first_chunk == later.first_chunk and self.size <= later.size


class Last(NamedTuple):
    """
    Where a file ends.
    """

    message: int  # SeaweedMQ's offset of its last message
    placed: Placed | None  # the last message that has offsets of Kafka's; others may come behind it


class LogFiles:
    """
    Of one partition. What is not as it was listed is told as `NotThere`.
    """

    def __init__(self, seaweed: Seaweed, form: Form) -> None:
        self.listed: Sequence[LogFile] = ()
        self.range_bytes = _BATCHES_BYTES if form.batched else _RECORDS_BYTES
        self._seaweed = seaweed
        self._form = form
        self._firsts: dict[str, int] = {}  # Kafka's offset of the first message in a file, by its path
        self._first_messages: dict[str, int] = {}  # and SeaweedMQ's
        self._without: dict[str, int] = {}  # before which byte of a file nothing has an offset of Kafka's
        self._lasts: dict[str, tuple[LogFile, Last]] = {}
        self._passed_over = PassedOver()

    async def refresh(self, folders: Sequence[Folder]) -> list[str]:
        """
        Look which files there are; the paths of those known before that are gone, or are others now.
        """
        filer, found = await self._seaweed.filer(), list[LogFile]()
        for folder in folders:
            for entry in await filer.all_entries(folder.path):
                if not entry.is_directory and is_log_file(entry.name) and entry.attributes.file_size:
                    found.append(_listed(folder, entry))
        now = {file.path: file for file in found}
        gone = [file.path for file in self.listed if file.path not in now or not file.has_become(now[file.path])]
        self.listed = found
        self._forget(gone)
        return gone

    def _forget(self, gone: Sequence[str]) -> None:
        for path in gone:
            self._firsts.pop(path, None)
            self._first_messages.pop(path, None)
            self._without.pop(path, None)
            self._lasts.pop(path, None)

    def report(self, folder: Folder) -> Report:
        """
        What forms tell of messages in this folder: those of others are passed over.
        """
        return self._passed_over.report(folder)

    async def first_offset(self, file: LogFile) -> int | None:
        """
        Kafka's offset of its first message that has one; `None` where none has.
        """
        known = self._firsts.get(file.path)
        if known is None and (placed := await self._first_placed(file)):
            known = self._firsts[file.path] = placed.offset
        return known

    async def first_message(self, file: LogFile) -> int:
        """
        SeaweedMQ's offset of it.
        """
        if file.path not in self._first_messages:
            await self._first_entry(file)
        return self._first_messages[file.path]

    async def last(self, file: LogFile) -> Last:
        """
        Where it ends. Only what was added since the last look is read, or the last chunk, if a message of ours ends it.
        """
        known = self._lasts.get(file.path)
        if known and known[0] == file:
            return known[1]
        seen, before = (known[0].size, known[1].placed) if known else (0, None)
        try:
            entry = await self._last_entry(file, max(seen, file.last_chunk))
        except Malformed:
            if file.last_chunk <= seen:
                raise
            entry = await self._last_entry(file, seen)  # somebody has put it together of other chunks
        placed = self._form.placed(entry, file.folder.shift, self.report(file.folder))
        last = Last(entry.offset, placed or await self._last_placed(file, seen) or before)
        self._lasts[file.path] = file, last
        return last

    async def of(self, offset: int, ledger: Ledger | None = None) -> Sequence[LogFile]:
        """
        The last file that is known to begin with Kafka's offset or before it, and those behind it.
        """
        files = self.listed
        told = _told(files, offset, ledger) if ledger else ()
        low, high = 0, len(files)
        while high - low > 1:
            middle = next((place for place in told if low < place < high), (low + high) // 2)
            first = await self._first_told(files[middle:high])
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
        place = bisect_right(files, name, key=lambda file: file.path.rpartition("/")[2]) - 2
        return files[max(place, 0)] if files else None

    async def range_at(self, file: LogFile, start: int) -> MessageRange:
        """
        The messages from a place on, as many as are read at once.
        """
        return await read_range(lambda *place: self._read(file, *place), start, file.size, self.range_bytes)

    def ranges(self, file: LogFile, start: int = 0) -> AsyncGenerator[MessageRange, None]:
        """
        All messages from a place on.
        """
        return read_ranges(lambda *place: self._read(file, *place), start, file.size, self.range_bytes)

    async def _first_told(self, files: Sequence[LogFile]) -> int | None:
        """
        Kafka's offset with which the first of these files begins that says it.
        """
        for file in files:
            with suppress(Malformed):
                first = await self.first_offset(file)
                if first is not None:
                    return first
        return None

    async def _first_placed(self, file: LogFile) -> Placed | None:
        folder, report, without = file.folder, self.report(file.folder), self._without.get(file.path, 0)
        if not without:
            placed = self._form.placed(await self._first_entry(file), folder.shift, report)
            if placed:
                return placed
        async with aclosing(self.ranges(file, without)) as ranges:
            async for messages in ranges:
                for found in self._form.walk(messages.entries(), folder.shift, report=report):
                    return found
        self._without[file.path] = file.size
        return None

    async def _last_placed(self, file: LogFile, start: int) -> Placed | None:
        """
        The last from this place on that has offsets of Kafka's.
        """
        folder, last, end = file.folder, None, EARLIEST_OFFSET
        async for messages in self.ranges(file, start):
            for last in self._form.walk(messages.entries(), folder.shift, end, self.report(folder)):
                end = last.offset + last.span
        return last

    async def _first_entry(self, file: LogFile) -> Entry:
        found = await read_range(lambda *place: self._read(file, *place), 0, file.size, _FIRST_BYTES)
        first = next(found.entries())
        self._first_messages[file.path] = first.offset
        return first

    async def _last_entry(self, file: LogFile, start: int) -> Entry:
        while True:
            found = await read_range(lambda *place: self._read(file, *place), start, file.size, _LAST_BYTES)
            if found.stop == file.size:
                return found.last()
            start = found.stop

    async def _read(self, file: LogFile, start: int, stop: int) -> bytes:
        data = await (await self._seaweed.filer()).files.read(file.path, start, stop)
        if len(data) != stop - start:
            raise NotThere(file.path, f"it ends before byte {stop}, and was listed with {file.size}")
        return data


def _listed(folder: Folder, entry: FilerEntry) -> LogFile:
    attributes, chunks = entry.attributes, entry.chunks
    first_chunk, last_chunk = (chunks[0].file_id, chunks[-1].offset) if chunks else ("", 0)
    path = f"{folder.path}/{entry.name}"
    return LogFile(path, attributes.file_size, attributes.mtime, folder, first_chunk, last_chunk)


def _told(files: Sequence[LogFile], offset: int, ledger: Ledger) -> Sequence[int]:
    """
    Which file the ledger says it is, and those beside it.
    """
    found = ledger.at(offset)
    folders = {file.folder.path for file in files if found and found.section[1:] == file.folder[-2:]}
    if not found or not folders:
        return ()
    path = f"{min(folders)}/{log_name(found.ts_ns)}"
    place = bisect_right(files, path, key=lambda file: file.path) - 1
    return place, place + 1, place - 1
