"""
The log files of one partition, as they were listed last, oldest first.

A broker writes a file for each interval of its flushes, named after the second of the first message in it, and may add
to the newest. A file never changes otherwise; where the name is that of another file, its first chunk tells, or that it
is smaller than it was. Which of Kafka's offsets a file begins with, only its first message says; so it is found by
bisection, beginning where the ledger says, and what was found out once is remembered.
"""

from bisect import bisect_right
from collections.abc import AsyncIterator, Sequence
from typing import NamedTuple

from kgateway.broker.seaweed.filer_files import NotThere
from kgateway.broker.seaweed.protos.filer_pb2 import Entry as FilerEntry
from kgateway.broker.seaweed.seaweed import Seaweed
from kgateway.broker.seaweedmq.folders import Folder
from kgateway.broker.seaweedmq.forms.form import Form, Placed
from kgateway.broker.seaweedmq.layout import is_log_file, log_name
from kgateway.broker.seaweedmq.ledger import Ledger
from kgateway.broker.seaweedmq.log_entries import Entry
from kgateway.broker.seaweedmq.message_ranges import MessageRange, read_range, read_ranges
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
        self._last: tuple[LogFile, Placed] | None = None  # the last message of one

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
        if self._last and self._last[0].path in gone:
            self._last = None

    async def first_offset(self, file: LogFile) -> int:
        """
        Kafka's offset of its first message.
        """
        known = self._firsts.get(file.path)
        if known is None:
            placed = self._form.placed(await self._first_entry(file), file.folder.shift)
            known = self._firsts[file.path] = placed.offset
        return known

    async def first_message(self, file: LogFile) -> int:
        """
        SeaweedMQ's offset of it.
        """
        if file.path not in self._first_messages:
            await self._first_entry(file)
        return self._first_messages[file.path]

    async def last(self, file: LogFile) -> Placed:
        """
        Where its last message stands. Only what was added since the last look is read, or the last chunk.
        """
        known = self._last
        if known and known[0] == file:
            return known[1]
        seen = known[0].size if known and known[0].path == file.path else 0
        try:
            entry = await self._last_entry(file, max(seen, file.last_chunk))
        except Malformed:
            if file.last_chunk <= seen:
                raise
            entry = await self._last_entry(file, seen)  # somebody has put it together of other chunks
        placed = self._form.placed(entry, file.folder.shift)
        self._last = file, placed
        return placed

    async def of(self, offset: int, ledger: Ledger | None = None) -> Sequence[LogFile]:
        """
        The last file that begins with Kafka's offset or before it, and those behind it.
        """
        files = self.listed
        told = _told(files, offset, ledger) if ledger else ()
        low, high = 0, len(files)
        while high - low > 1:
            middle = next((place for place in told if low < place < high), (low + high) // 2)
            if await self.first_offset(files[middle]) <= offset:
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

    def ranges(self, file: LogFile, start: int = 0) -> AsyncIterator[MessageRange]:
        """
        All messages from a place on.
        """
        return read_ranges(lambda *place: self._read(file, *place), start, file.size, self.range_bytes)

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
