"""
Reads log files range by range, as Kafka's batches, and has the next range on its way before it is asked for.

Ranges follow one another: where one begins is known when the one before it was read. Marks remember where that was, so
that a file need not be read from its beginning again.
"""

from bisect import bisect_right
from collections.abc import AsyncIterator, Collection, Sequence
from typing import NamedTuple

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import deferLater

from kgateway.broker.seaweed.shared import Shared
from kgateway.broker.seaweedmq.decoded_files import Decoded, DecodedFiles, Key, Mark
from kgateway.broker.seaweedmq.forms.form import Form
from kgateway.broker.seaweedmq.log_entries import Entry
from kgateway.broker.seaweedmq.log_files import LogFile, LogFiles
from kgateway.broker.seaweedmq.message_ranges import MessageRange
from kgateway.broker.tail import Tail
from kgateway.records.batch import batches
from kgateway.wire.types import Buffer

_PIECE_BYTES = 1 << 18  # of a range, which are decoded in one go


class _Wanted(NamedTuple):
    file: LogFile
    mark: Mark

    @property
    def key(self) -> Key:
        return Key(self.file.path, self.file.first_chunk, self.mark.start)


class RangeReading:
    """
    In the files of one partition.
    """

    def __init__(self, files: LogFiles, form: Form, decoded: DecodedFiles, clock: IReactorTime) -> None:
        self._files = files
        self._form = form
        self._decoded = decoded
        self._clock = clock
        self._coming: Shared[_Wanted, Decoded] = Shared(self._fetched)
        self._marks: dict[str, list[Mark]] = {}  # of files that were read, by their paths

    async def read(
        self, files: Sequence[LogFile], offset: int, max_bytes: int, at_least_one: bool, stop: int
    ) -> list[Buffer]:
        """
        Whole batches from the one on that has the offset, out of one range of the files from one on.
        """
        for number, file in enumerate(files):
            wanted = self._nearest(file, offset)
            while wanted.mark.start < file.size:
                tail, following = await self._range(wanted)
                behind = _Wanted(file, following)
                if offset < tail.end:
                    found, size = tail.read(offset, max_bytes, at_least_one, stop)
                    if stop > tail.end and (2 * size >= tail.size or 2 * offset > tail.start + tail.end):
                        self._read_ahead(behind, files[number + 1 : number + 2])
                    if found and found[-1] is tail.batches[-1]:
                        self._decoded.read_to_its_end(wanted.key)
                    return found
                self._decoded.read_to_its_end(wanted.key)
                wanted = behind
        return []

    def forget(self, paths: Collection[str]) -> None:
        """
        These files are gone, or are others now.
        """
        for path in paths:
            self._marks.pop(path, None)
        self._decoded.forget(paths)

    async def pieces(self, found: MessageRange) -> AsyncIterator[list[Entry]]:
        """
        Some messages at a time, with a turn of the reactor for others between.
        """
        piece, began = list[Entry](), found.start
        for entry in found.entries():
            piece.append(entry)
            if entry.end - began >= _PIECE_BYTES:
                yield piece
                await deferLater(self._clock, 0)
                piece, began = [], entry.end
        if piece:
            yield piece

    def _nearest(self, file: LogFile, offset: int) -> _Wanted:
        """
        Where to look for an offset, as far as the file was read already.
        """
        marks = self._marks_of(file)
        return _Wanted(file, marks[max(bisect_right(marks, offset, key=lambda mark: mark.end) - 1, 0)])

    def _marks_of(self, file: LogFile) -> list[Mark]:
        return self._marks.setdefault(file.path, [Mark(0, 0, file.folder.shift)])

    async def _range(self, wanted: _Wanted) -> Decoded:
        return self._decoded.get(wanted.key) or await self._coming.get(wanted)

    def _read_ahead(self, behind: _Wanted, following: Sequence[LogFile]) -> None:
        """
        Fetch what will be asked for soon: of the same file, or of the one that follows.
        """
        if behind.mark.start >= behind.file.size:
            if not following:
                return
            behind = _Wanted(following[0], self._marks_of(following[0])[0])
        size = min(behind.file.size - behind.mark.start, self._files.range_bytes)
        if self._decoded.may_read_ahead(behind.key, size):
            self._coming.get(behind).addErrback(lambda _: self._decoded.not_kept(behind.key))  # who asks is told

    async def _fetched(self, wanted: _Wanted) -> Decoded:
        decoded = await self._decoded.places.run(lambda: Deferred.fromCoroutine(self._read(wanted)))
        self._decoded.keep(wanted.key, decoded)
        marks = self._marks_of(wanted.file)
        if marks[-1].start < decoded.next.start:
            marks.append(decoded.next)
        return decoded

    async def _read(self, wanted: _Wanted) -> Decoded:
        (start, end, shift), form, report = wanted.mark, self._form, self._files.report(wanted.file.folder)
        tail, found = Tail[Buffer](end), await self._files.range_at(wanted.file, start)
        async for piece in self.pieces(found):
            for buffer in form.decode(piece, shift, tail.end, report):
                for batch in batches(buffer):
                    tail.add(batch.data, batch.header.base_offset, batch.header.last_offset + 1)
            shift = form.shift_behind(piece, shift)
        return Decoded(tail, Mark(found.stop, tail.end, shift))
