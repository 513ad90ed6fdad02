"""
All files that SeaweedMQ has written for one partition, oldest first.
"""

from bisect import bisect_right
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from itertools import chain, dropwhile, islice
from typing import NamedTuple, TypeVar

from twisted.internet.defer import Deferred, DeferredLock
from twisted.internet.interfaces import IReactorTime

from kgateway.broker.seaweed.calls.retries import Precondition
from kgateway.broker.seaweed.cluster import SeaweedCluster
from kgateway.broker.seaweed.filer.content import FileNotFound
from kgateway.broker.seaweedmq.files.log_files import LogFile, LogFiles
from kgateway.broker.seaweedmq.files.offset_continuity import OffsetContinuity, ShownEnd
from kgateway.broker.seaweedmq.files.range_reader import RangeCache, RangeReader
from kgateway.broker.seaweedmq.formats.format import MessageFormat, SkippedMessage
from kgateway.broker.seaweedmq.formats.log_entry import LoggedMessage
from kgateway.broker.seaweedmq.layout.offset_shifts import OffsetShift
from kgateway.broker.seaweedmq.layout.topic_file import PartitionFolder
from kgateway.broker.seaweedmq.layout.topic_paths import SECOND_NS, log_name
from kgateway.broker.seaweedmq.ledger.ledger import LATEST, Ledger
from kgateway.cluster.partition import EARLIEST_OFFSET
from kgateway.records.batch import BatchHeader
from kgateway.wire.errors import ErrorCode, KafkaError, Malformed
from kgateway.wire.types import Buffer

T = TypeVar("T")
_CLOCKS_DIFFER_NS = 600 * SECOND_NS  # at most, those of gateways and brokers
Damaged = Callable[[str, Malformed], None]  # called with the path of a file


def stop_there(path: str, error: Malformed) -> None:
    raise error


class FilesEnd(NamedTuple):
    offset: int  # Kafka's
    next_message: int  # SeaweedMQ's
    last_file: tuple[str, int] | None = None  # in today's folder: its path, and SeaweedMQ's offset of its first message
    gap: int = 0  # how many offsets before it were given to messages that are lost
    ts_ns: int = 0  # of the last message in today's folder
    leaves_out: bool = False  # the broker leaves out numbers before the next message


class PartitionFiles:
    """
    The files in the partition's folder of today, and in those it had before its topic grew.

    Files may vanish at the front. If one is missing, they are listed again.
    """

    def __init__(
        self,
        seaweed: SeaweedCluster,
        folders: Sequence[PartitionFolder],
        message_format: MessageFormat,
        decoded: RangeCache,
        clock: IReactorTime,
    ) -> None:
        self.folders = list(folders)  # oldest first
        self.ledger: Ledger | None = None  # which says where to look first
        self._format = message_format
        self._files = LogFiles(seaweed, message_format)
        self._ranges = RangeReader(self._files, message_format, decoded, clock)
        self._continuity: OffsetContinuity | None = None
        self._listing = DeferredLock()

    def lead(
        self, precondition: Precondition, shown: Callable[[], ShownEnd | None], lost: Callable[[int], None]
    ) -> None:
        """
        From now on, make offsets continue in new files. `shown` says what consumers have got; `lost` is called with its
        end if what they have got last is lost.
        """
        if not self._format.batched:
            self._continuity = OffsetContinuity(self._files, precondition, shown, lost)
            self._continuity.mark_checked(self.listed)

    @property
    def listed(self) -> Sequence[LogFile]:
        return self._files.listed

    @property
    def sizes(self) -> list[int]:
        return [file.size for file in self.listed]

    async def refresh(self) -> None:
        await self._listing.run(lambda: Deferred.fromCoroutine(self._refresh()))

    async def _refresh(self) -> None:
        try:
            await self._list()
        except FileNotFound:  # a file was deleted after it was listed
            await self._list()

    async def _list(self) -> None:
        found = await self._files.listing(self.folders)
        if self._continuity:
            if not self.listed and self.ledger:
                self._continuity.mark_checked(_seen_by(self.ledger, found))
            found = await self._continuity.continue_offsets(found, self.folders)
        self._ranges.forget(self._files.adopt(found))

    def shift_at(self, ts_ns: int) -> int:
        """
        The shift with which messages are read in a file that begins at this time, in today's folder.
        """
        return self._files.shift_of(self.folders[-1], log_name(ts_ns))

    async def add_shift_at(self, ts_ns: int, shift: int, precondition: Precondition) -> None:
        """
        Read messages with another shift in files that begin at this time or later.
        """
        added = OffsetShift(log_name(ts_ns), shift)
        await self._listing.run(
            lambda: Deferred.fromCoroutine(self._files.add_shift(self.folders[-1], added, precondition))
        )

    def report(self, left_out: SkippedMessage) -> None:
        """
        Report a skipped message of today's folder.
        """
        self._files.report(self.folders[-1])(left_out)

    async def first(self, file: LogFile) -> int | None:
        """
        Kafka's offset of the first message in the file or after it; `None` if there is none.
        """
        here_on = dropwhile(lambda each: each.path != file.path, self.listed)
        for each in chain((file,), islice(here_on, 1, None)):
            found = await self._files.first_offset(each)
            if found is not None:
                return found
        return None

    async def start(self) -> int | None:
        """
        Kafka's offset of the first message; `None` if there is none.
        """

        async def first() -> int | None:
            return await self.first(self.listed[0]) if self.listed else None

        return await self._listing_again(first)

    async def end(self, start: int) -> FilesEnd:
        """
        Where the last file ends; `start` is its offset if no file has any of Kafka's.
        """
        return await self._listing_again(lambda: self._end(start))

    async def read(self, offset: int, max_bytes: int, at_least_one: bool, stop: int) -> list[Buffer]:
        """
        Whole batches from the one that has the offset, as many as are decoded together.
        """

        async def look() -> list[Buffer]:
            files = await self._files.from_offset(offset, self.ledger)
            return await self._ranges.read(files, offset, max_bytes, at_least_one, stop)

        try:
            found = await look()
        except FileNotFound:
            await self.refresh()
            await self._check_there(offset)
            return await look()
        if not found:
            await self.refresh()  # it may be in a file that was not there before
            found = await look()
        return found

    async def messages(
        self, offset: int | None, damaged: Damaged = stop_there
    ) -> AsyncIterator[tuple[PartitionFolder, list[LoggedMessage]]]:
        """
        The messages in files, some at a time, from the file that has the offset, or from the first. For a file that
        cannot be read to its end `damaged` is called, before the next one is read.
        """
        for file in await self._since(offset):
            folder, number = file.folder, file.first
            try:
                async for found in self._files.ranges(file):
                    async for piece in self._ranges.pieces(found, number):
                        yield folder, piece
                        number = piece[-1].offset + 1
                        folder = folder._replace(shift=self._format.shift_after(piece, folder.shift))
            except FileNotFound:
                await self.refresh()
                if any(each.path == file.path for each in self.listed):
                    raise
            except Malformed as error:
                damaged(file.path, error)

    async def offset_before(self, timestamp: int) -> int | None:
        """
        Kafka's offset of a message before which none was published at this time, in milliseconds, or later; `None`
        if there are no files.
        """

        async def before() -> int | None:
            file = self._files.published_before(timestamp)
            return await self._files.first_offset(file) if file else None

        return await self._listing_again(before)

    async def path_of(self, offset: int) -> str:
        return (await self._files.from_offset(offset, self.ledger))[0].path

    async def producers(self, start: int, end: int) -> Sequence[BatchHeader]:
        """
        The batches of idempotent producers between two offsets, as readers get them.
        """
        found, end_offset = list[BatchHeader](), EARLIEST_OFFSET
        async for folder, piece in self.messages(start):
            for placed in self._format.walk(piece, folder.shift, end_offset, self._files.report(folder)):
                end_offset = placed.offset + placed.span
                if placed.batch and start <= placed.offset < end:
                    found.append(placed.batch)
        return found

    async def _since(self, offset: int | None) -> Sequence[LogFile]:
        if offset is None:
            return self.listed
        return await self._listing_again(lambda: self._files.from_offset(offset, self.ledger))

    async def _end(self, start: int) -> FilesEnd:
        newest, end = self.folders[-1], await self._end_offset(start)
        file = self.listed[-1] if self.listed else None
        if file is None or file.folder.path != newest.path:  # nothing yet since the topic has grown
            # Offsets before it may have been given to messages that are lost.
            return FilesEnd(max(end, newest.first_message + newest.shift), newest.first_message)
        last = await self._files.last(file)
        last_file = file.path, await self._files.first_message(file)
        return FilesEnd(end, last.message_offset + 1, last_file, ts_ns=last.ts_ns)

    async def _end_offset(self, start: int) -> int:
        """
        Kafka's offset after the last message that has one.
        """
        for file in reversed(self.listed):
            placed = (await self._files.last(file)).placed
            if placed:
                return placed.offset + placed.span
        return start

    async def _check_there(self, offset: int) -> None:
        """
        Raise OFFSET_OUT_OF_RANGE for an offset whose file is gone.
        """
        first = await self.start()
        if first is None or offset < first:
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, f"the file with offset {offset} was deleted")

    async def _listing_again(self, ask: Callable[[], Awaitable[T]]) -> T:
        """
        The answer; if a file is not as it was listed, the answer after another listing.
        """
        try:
            return await ask()
        except FileNotFound:
            await self.refresh()
            return await ask()


def _seen_by(ledger: Ledger, files: Sequence[LogFile]) -> Sequence[LogFile]:
    """
    The files before the one in which the ledger ends, which a gateway has read that leads no more.
    """
    last = ledger.at(LATEST)
    if last is None:
        return ()
    folder = next((file.folder.path for file in files if last.section[1:] == file.folder[-2:]), "")
    path = f"{folder}/{log_name(max(last.ts_ns - _CLOCKS_DIFFER_NS, 0))}"
    return files[: max(bisect_right(files, path, key=lambda file: file.path) - 1, 0)]
