"""
What one partition has in the files that SeaweedMQ has written of it, oldest first.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from itertools import chain, dropwhile, islice
from typing import NamedTuple, TypeVar

from twisted.internet.interfaces import IReactorTime

from kgateway.broker.seaweed.filer_files import NotThere
from kgateway.broker.seaweed.seaweed import Seaweed
from kgateway.broker.seaweedmq.decoded_files import DecodedFiles
from kgateway.broker.seaweedmq.folders import Folder
from kgateway.broker.seaweedmq.forms.form import Form
from kgateway.broker.seaweedmq.ledger import Ledger
from kgateway.broker.seaweedmq.log_entries import Entry
from kgateway.broker.seaweedmq.log_files import LogFile, LogFiles
from kgateway.broker.seaweedmq.range_reading import RangeReading
from kgateway.cluster.partition import EARLIEST_OFFSET
from kgateway.records.batch import BatchHeader
from kgateway.wire.errors import ErrorCode, KafkaError
from kgateway.wire.malformed import Malformed
from kgateway.wire.types import Buffer

T = TypeVar("T")
Damaged = Callable[[str, Malformed], None]  # told the path of a file


def stop_there(path: str, error: Malformed) -> None:
    """
    What is done where nobody is to be told of damage: nothing is read behind it.
    """
    raise error


class End(NamedTuple):
    """
    Where the files end.
    """

    offset: int  # Kafka's
    next_message: int  # SeaweedMQ's
    last_file: tuple[str, int] | None = None  # in today's folder: its path, and SeaweedMQ's offset of its first message
    gap: int = 0  # how many offsets before it were given to messages that are lost


class History:
    """
    The files of a partition: of its folder today, and of those it had before its topic grew.

    Files may vanish at the front. Where one is not there any more, they are listed anew.
    """

    def __init__(
        self, seaweed: Seaweed, folders: Sequence[Folder], form: Form, decoded: DecodedFiles, clock: IReactorTime
    ) -> None:
        self.folders = list(folders)  # oldest first
        self.ledger: Ledger | None = None  # which says where to look first
        self._form = form
        self._files = LogFiles(seaweed, form)
        self._ranges = RangeReading(self._files, form, decoded, clock)

    @property
    def files(self) -> Sequence[LogFile]:
        """
        As they were listed last.
        """
        return self._files.listed

    @property
    def sizes(self) -> list[int]:
        """
        How many bytes each file has.
        """
        return [file.size for file in self.files]

    async def refresh(self) -> None:
        """
        Look which files there are.
        """
        self._ranges.forget(await self._files.refresh(self.folders))

    async def first(self, file: LogFile) -> int | None:
        """
        Kafka's offset of the first message in it or behind it; `None` where there is none.
        """
        here_on = dropwhile(lambda each: each.path != file.path, self.files)
        for each in chain((file,), islice(here_on, 1, None)):
            found = await self._files.first_offset(each)
            if found is not None:
                return found
        return None

    async def start(self) -> int | None:
        """
        Kafka's offset of the first message there is; `None` where there is none.
        """

        async def first() -> int | None:
            return await self.first(self.files[0]) if self.files else None

        return await self._listing_anew(first)

    async def end(self, start: int) -> End:
        """
        Where the last file ends; Kafka's offsets at the start, where no file has any.
        """
        return await self._listing_anew(lambda: self._end(start))

    async def read(self, offset: int, max_bytes: int, at_least_one: bool, stop: int) -> list[Buffer]:
        """
        Whole batches from the one on that has the offset, as many as are decoded at once.
        """

        async def look() -> list[Buffer]:
            files = await self._files.of(offset, self.ledger)
            return await self._ranges.read(files, offset, max_bytes, at_least_one, stop)

        try:
            found = await look()
        except NotThere:
            await self.refresh()
            await self._check_there(offset)
            return await look()
        if not found:
            await self.refresh()  # it may be in a file that was not there before
            found = await look()
        return found

    async def messages(
        self, offset: int | None, damaged: Damaged = stop_there
    ) -> AsyncIterator[tuple[Folder, list[Entry]]]:
        """
        What is in files, some messages at a time, from the file on that has the offset, or from the first on. Of a file
        that cannot be read to its end `damaged` is told, before the next one is read.
        """
        for file in await self._since(offset):
            folder = file.folder
            try:
                async for found in self._files.ranges(file):
                    async for piece in self._ranges.pieces(found):
                        yield folder, piece
                        folder = folder._replace(shift=self._form.shift_behind(piece, folder.shift))
            except NotThere:
                await self.refresh()
                if any(each.path == file.path for each in self.files):
                    raise
            except Malformed as error:
                damaged(file.path, error)

    async def offset_before(self, timestamp: int) -> int | None:
        """
        Kafka's offset of a message before which none was published at this time, in milliseconds, or later; `None`
        where there are no files.
        """

        async def before() -> int | None:
            file = self._files.published_before(timestamp)
            return await self._files.first_offset(file) if file else None

        return await self._listing_anew(before)

    async def path_of(self, offset: int) -> str:
        """
        The file that has the offset.
        """
        return (await self._files.of(offset, self.ledger))[0].path

    async def producers(self, start: int, end: int) -> Sequence[BatchHeader]:
        """
        The batches of idempotent producers between two offsets, as readers get them.
        """
        found, behind = list[BatchHeader](), EARLIEST_OFFSET
        async for folder, piece in self.messages(start):
            for placed in self._form.walk(piece, folder.shift, behind, self._files.report(folder)):
                behind = placed.offset + placed.span
                if placed.batch and start <= placed.offset < end:
                    found.append(placed.batch)
        return found

    async def _since(self, offset: int | None) -> Sequence[LogFile]:
        if offset is None:
            return self.files
        return await self._listing_anew(lambda: self._files.of(offset, self.ledger))

    async def _end(self, start: int) -> End:
        newest = self.folders[-1]
        if not self.files:
            return End(start, newest.first_message)
        file = self.files[-1]
        last, end = await self._files.last(file), await self._end_offset(start)
        if file.folder != newest:  # nothing yet since the topic has grown
            return End(end, newest.first_message)
        return End(end, last.message + 1, (file.path, await self._files.first_message(file)))

    async def _end_offset(self, start: int) -> int:
        """
        Kafka's, behind the last message that has any.
        """
        for file in reversed(self.files):
            placed = (await self._files.last(file)).placed
            if placed:
                return placed.offset + placed.span
        return start

    async def _check_there(self, offset: int) -> None:
        """
        Refuse an offset that has gone with its file.
        """
        first = await self.start()
        if first is None or offset < first:
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, f"the file that had offset {offset} is gone")

    async def _listing_anew(self, ask: Callable[[], Awaitable[T]]) -> T:
        """
        An answer; where a file is not as it was listed, that of the next listing.
        """
        try:
            return await ask()
        except NotThere:
            await self.refresh()
            return await ask()
