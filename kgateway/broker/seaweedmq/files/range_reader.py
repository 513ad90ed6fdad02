"""
Reads log files range by range, as Kafka's batches, and prefetches the next range.

Ranges follow one another: where one begins is known when the one before it was read. Range starts are remembered, so
that a file need not be read from its beginning again.

A consumer that catches up reads a range in many pieces; it is fetched and decoded once for all of them, and cached.
Prefetched ranges may take half of the cache, so that they do not evict what others are reading; a range that was read
to its end is kept for the next consumer, as long as half of the cache is free.
"""

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import AsyncIterator, Collection, Sequence
from typing import NamedTuple

from twisted.internet.defer import Deferred, DeferredSemaphore
from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import deferLater

from kgateway.broker.deferreds import SharedAnswers
from kgateway.broker.partition.batch_cache import BatchCache
from kgateway.broker.seaweedmq.files.log_files import LogFile, LogFiles
from kgateway.broker.seaweedmq.files.message_ranges import MessageRange
from kgateway.broker.seaweedmq.formats.format import MessageFormat
from kgateway.broker.seaweedmq.formats.log_entry import LoggedMessage
from kgateway.records.batch import batches
from kgateway.wire.types import Buffer

_AT_ONCE = 4  # ranges on their way


class RangeKey(NamedTuple):
    path: str
    first_chunk: str
    start: int


class RangeStart(NamedTuple):
    """
    Where a range begins in its file, and how Kafka's offsets continue there.
    """

    start: int
    end: int  # Kafka's offset after all that is before it
    shift: int  # Kafka's offsets minus the numbers of messages
    number: int | None  # of the first message in it; None for that of the file's first message


class DecodedRange(NamedTuple):
    """
    The batches of a range, and where the next one begins.
    """

    tail: BatchCache[Buffer]
    next: RangeStart


class RangeCache:
    """
    The ranges that were asked for last, as many as fit into a number of bytes.
    """

    def __init__(self, bytes_max: int) -> None:
        self.fetch_slots = DeferredSemaphore(_AT_ONCE)  # limits concurrent fetches
        self._bytes_max = bytes_max
        self._bytes = 0
        self._ranges: OrderedDict[RangeKey, DecodedRange] = OrderedDict()
        self._finished: set[RangeKey] = set()
        self._ahead: dict[RangeKey, int] = {}  # bytes of those that are prefetched and not asked for yet

    def get(self, key: RangeKey) -> DecodedRange | None:
        self._ahead.pop(key, None)
        self._finished.discard(key)
        found = self._ranges.get(key)
        if found is not None:
            self._ranges.move_to_end(key)
        return found

    def may_read_ahead(self, key: RangeKey, size: int) -> bool:
        """
        Whether to prefetch a range; room is reserved for it then.
        """
        if key in self._ranges or key in self._ahead or sum(self._ahead.values()) + size > self._bytes_max // 2:
            return False
        self._ahead[key] = size
        return True

    def finished(self, key: RangeKey) -> None:
        """
        Make this range the first to be evicted, and evict such ranges if the cache is half full.
        """
        if key in self._ranges:
            self._ranges.move_to_end(key, last=False)
            self._finished.add(key)
        while self._finished and self._bytes > self._bytes_max // 2:
            self._drop(min(self._finished))

    def add(self, key: RangeKey, decoded: DecodedRange) -> None:
        """
        Cache a range, and evict the least recently used ones.
        """
        if key in self._ranges:
            self._bytes -= self._ranges[key].tail.size
        self._ranges[key] = decoded
        self._bytes += decoded.tail.size
        while self._bytes > self._bytes_max and len(self._ranges) > 1:
            self._drop(next(iter(self._ranges)))

    def release_room(self, key: RangeKey) -> None:
        """
        Release the room of a range that could not be prefetched.
        """
        self._ahead.pop(key, None)

    def forget(self, paths: Collection[str]) -> None:
        for key in [key for key in self._ranges if key.path in paths]:
            self._drop(key)

    def _drop(self, key: RangeKey) -> None:
        self._bytes -= self._ranges.pop(key).tail.size
        self._ahead.pop(key, None)
        self._finished.discard(key)


_PIECE_BYTES = 1 << 18  # of a range, which are decoded in one go


class _Wanted(NamedTuple):
    file: LogFile
    mark: RangeStart

    @property
    def key(self) -> RangeKey:
        return RangeKey(self.file.path, self.file.first_chunk, self.mark.start)


class RangeReader:
    def __init__(
        self, files: LogFiles, message_format: MessageFormat, decoded: RangeCache, clock: IReactorTime
    ) -> None:
        self._files = files
        self._format = message_format
        self._decoded = decoded
        self._clock = clock
        self._coming: SharedAnswers[_Wanted, DecodedRange] = SharedAnswers(self._fetched)
        self._marks: dict[str, list[RangeStart]] = {}  # of files that were read, by their paths

    async def read(
        self, files: Sequence[LogFile], offset: int, max_bytes: int, at_least_one: bool, stop: int
    ) -> list[Buffer]:
        """
        Whole batches from the one that has the offset, out of one range of these files.
        """
        for number, file in enumerate(files):
            wanted = self._nearest(file, offset)
            while wanted.mark.start < file.size:
                tail, following = await self._range(wanted)
                next_range = _Wanted(file, following)
                if offset < tail.end:
                    found, size = tail.read(offset, max_bytes, at_least_one, stop)
                    if stop > tail.end and (2 * size >= tail.size or 2 * offset > tail.start + tail.end):
                        self._read_ahead(next_range, files[number + 1 : number + 2])
                    if found and found[-1] is tail.batches[-1]:
                        self._decoded.finished(wanted.key)
                    return found
                self._decoded.finished(wanted.key)
                wanted = next_range
        return []

    def forget(self, paths: Collection[str]) -> None:
        for path in paths:
            self._marks.pop(path, None)
        self._decoded.forget(paths)

    async def pieces(self, found: MessageRange, number: int | None) -> AsyncIterator[list[LoggedMessage]]:
        """
        Some messages at a time, the first one with this number, and a turn of the reactor for others between.
        """
        piece, began = list[LoggedMessage](), found.start
        for entry in self._files.messages(found, number):
            piece.append(entry)
            if entry.end - began >= _PIECE_BYTES:
                yield piece
                await deferLater(self._clock, 0)
                piece, began = [], entry.end
        if piece:
            yield piece

    def _nearest(self, file: LogFile, offset: int) -> _Wanted:
        """
        The range to look for an offset in, as far as the file was read already.
        """
        marks = self._marks_of(file)
        return _Wanted(file, marks[max(bisect_right(marks, offset, key=lambda mark: mark.end) - 1, 0)])

    def _marks_of(self, file: LogFile) -> list[RangeStart]:
        return self._marks.setdefault(file.path, [RangeStart(0, 0, file.folder.shift, file.first)])

    async def _range(self, wanted: _Wanted) -> DecodedRange:
        return self._decoded.get(wanted.key) or await self._coming.get(wanted)

    def _read_ahead(self, next_range: _Wanted, following: Sequence[LogFile]) -> None:
        """
        Prefetch the next range, of the same file or of the one that follows.
        """
        if next_range.mark.start >= next_range.file.size:
            if not following:
                return
            next_range = _Wanted(following[0], self._marks_of(following[0])[0])
        size = min(next_range.file.size - next_range.mark.start, self._files.range_bytes)
        if self._decoded.may_read_ahead(next_range.key, size):
            # A reader gets the error.
            self._coming.get(next_range).addErrback(lambda _: self._decoded.release_room(next_range.key))

    async def _fetched(self, wanted: _Wanted) -> DecodedRange:
        decoded = await self._decoded.fetch_slots.run(lambda: Deferred.fromCoroutine(self._read(wanted)))
        self._decoded.add(wanted.key, decoded)
        marks = self._marks_of(wanted.file)
        if marks[-1].start < decoded.next.start:
            marks.append(decoded.next)
        return decoded

    async def _read(self, wanted: _Wanted) -> DecodedRange:
        (start, end, shift, number), message_format = wanted.mark, self._format
        report = self._files.report(wanted.file.folder)
        tail, found = BatchCache[Buffer](end), await self._files.range_at(wanted.file, start)
        async for piece in self.pieces(found, number):
            for buffer in message_format.decode(piece, shift, tail.end, report):
                for batch in batches(buffer):
                    tail.add(batch.data, batch.header.base_offset, batch.header.last_offset + 1)
            shift, number = message_format.shift_after(piece, shift), piece[-1].offset + 1
        return DecodedRange(tail, RangeStart(found.stop, tail.end, shift, number))
