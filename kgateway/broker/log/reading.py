"""
Reading batches for consumers: at once where the page cache has them, else in a thread, so that one who reads old
records stalls nobody.

What comes from the disk is checked before it is given out, and so is, once, what an earlier process has written. Good
batches before a damaged one are given out; who asks for that one is told CORRUPT_MESSAGE.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from twisted.internet.defer import Deferred
from twisted.logger import Logger
from twisted.python.failure import Failure

from kgateway.broker.log.disk import File
from kgateway.broker.log.index import FIRST
from kgateway.broker.log.partition_log import End, PartitionLog
from kgateway.broker.log.parts import PIECE_BYTES, LogParts, plain
from kgateway.broker.log.seeking import seek
from kgateway.broker.log.segment import Segment
from kgateway.broker.log.walking import Damaged, EpochAt, NotCached, Piece, Source, check, cut_piece
from kgateway.records.batch import HEADER_SIZE, Batch, batches
from kgateway.wire.errors import ErrorCode, KafkaError

Shown = list[bytes] | Deferred[list[bytes]]
Again = Callable[[], Shown]

_ANY = (1 << 63) - 1
_COUNT, _NO_RECORDS = slice(HEADER_SIZE - 4, HEADER_SIZE), bytes(4)  # of the records in a batch
_SOUGHT = 1 << 20  # bytes that no index leads over, at most
_READ_MAX = 2 << 20  # at once, where a consumer would take more: what is read waits in memory until it is sent


class Span(NamedTuple):
    """
    What is asked for: of which segment, and as far as which byte and offset it may be read.
    """

    segment: Segment
    end: int
    end_offset: int
    offset: int
    max_bytes: int
    at_least_one: bool
    epoch_at: EpochAt


class Found(NamedTuple):
    """
    Whole batches in pieces, where they stand in the segment, and which offset is behind them where that is known.
    """

    start: int
    end: int
    pieces: list[bytes]
    next_offset: int | None


class Reader:
    """
    Reads the log of one partition.
    """

    __slots__ = ("_epoch_at", "_log", "_parts", "_reported")
    _logger = Logger()

    def __init__(self, log: PartitionLog, parts: LogParts, epoch_at: EpochAt) -> None:
        self._log = log
        self._parts = parts
        self._epoch_at = epoch_at
        self._reported: set[str] = set()

    def read(self, offset: int, limit: End, max_bytes: int, at_least_one: bool) -> Shown:
        """
        Whole batches, from the one on that has the offset, which is before the limit. Not only such without records,
        which compaction leaves: librdkafka believes then that a record did not fit.
        """
        while True:
            data = self._read(offset, limit, max_bytes, at_least_one)
            if isinstance(data, Deferred):
                return data.addCallback(self._shown, limit, max_bytes, at_least_one)
            following = _behind_empty(data)
            if following is None:
                return data
            if following >= limit.offset:
                return []
            offset = following

    def _shown(self, data: list[bytes], limit: End, max_bytes: int, at_least_one: bool) -> Shown:
        following = _behind_empty(data)
        if following is None:
            return data
        return self.read(following, limit, max_bytes, at_least_one) if following < limit.offset else []

    def _read(self, offset: int, limit: End, max_bytes: int, at_least_one: bool) -> Shown:
        again = partial(self._read, offset, limit, max_bytes, at_least_one)
        segment = self._log.segment_of(offset)
        is_last = segment.base_offset == limit.base_offset
        end, end_offset = (limit.position, limit.offset) if is_last else (segment.size, segment.next_offset)
        span = Span(segment, end, end_offset, offset, max(0, min(max_bytes, _READ_MAX)), at_least_one, self._epoch_at)
        if not segment.indexes.is_loaded:
            return self._from_disk(span, again)
        try:
            source = self._parts.scratch.source(self._parts.files.get(segment.path))
            found = _found(source, span, always_check=False)
        except NotCached:
            return self._from_disk(span, again)
        except (Damaged, OSError) as error:
            raise self._refusal(span.segment, span.offset, error) from None
        return self._given(span, found)

    def end_before(self, offset: int) -> End:
        """
        Where the batch begins that has this offset: the end for who may not read it.
        """
        segment = self._log.segment_of(offset)
        try:
            source = self._parts.files.get(segment.path).read
            span = Span(segment, segment.size, segment.next_offset, offset, 0, False, self._epoch_at)
            return End(offset, segment.base_offset, _position(source, span))
        except (Damaged, OSError) as error:
            raise self._refusal(segment, offset, error) from None

    def loaded(self, segment: Segment) -> None:
        """
        The indexes of a segment were needed, and are in memory: they stay for as long as there is room.
        """
        if segment is not self._log.segments[-1] and self._log.has(segment):  # the last one needs them for appends
            self._parts.loaded.used(segment)

    def _from_disk(self, span: Span, again: Again) -> Deferred[list[bytes]]:
        """
        `again` is called where compaction has put another in the place of the segment meanwhile.
        """
        files = self._parts.files
        try:
            file = files.hold(span.segment.path)
        except OSError as error:
            raise self._refusal(span.segment, span.offset, error) from None

        def done(found: Found) -> list[bytes]:
            files.let_go(file)
            self.loaded(span.segment)
            return self._given(span, found)

        def failed(failure: Failure) -> Failure | list[bytes] | Deferred[list[bytes]]:
            files.let_go(file)
            error = failure.value
            if not self._log.has(span.segment):
                return again() if span.offset >= self._log.start_offset else Failure(_let_go(span))
            if isinstance(error, Damaged | OSError):
                return Failure(self._refusal(span.segment, span.offset, error))
            return failure

        return self._parts.in_thread(partial(_found_on_disk, file, span)).addCallbacks(done, failed)

    def _given(self, span: Span, found: Found) -> list[bytes]:
        """
        What was read; whoever reads on will find the next batch at once.
        """
        span.segment.checked(found.start, found.end)
        next_offset = span.end_offset if found.end == span.end else found.next_offset
        if next_offset is not None:
            span.segment.expect(next_offset, found.end)
        return found.pieces

    def _refusal(self, segment: Segment, offset: int, error: Damaged | OSError) -> KafkaError:
        """
        What the client is told; the operator is told once.
        """
        code = ErrorCode.CORRUPT_MESSAGE if isinstance(error, Damaged) else ErrorCode.KAFKA_STORAGE_ERROR
        what = str(error) if isinstance(error, Damaged) else plain(error)
        path = segment.path
        reason = f"{path.parent.name}/{path.name} cannot be read for offset {offset}: {what}"
        damage = f"{path.name} {what}"
        if damage not in self._reported:
            self._reported.add(damage)
            self._logger.error("{reason}. `kgateway log check` tells more.", reason=reason)
        return KafkaError(code, reason)


def _behind_empty(data: list[bytes]) -> int | None:
    """
    The offset behind these batches, if none of them has a record.
    """
    if not data or data[0][_COUNT] != _NO_RECORDS:
        return None
    following: int | None = None
    for piece in data:
        for batch in batches(piece):
            if batch.header.records_count:
                return None
            following = batch.header.last_offset + 1
    return following


def _let_go(span: Span) -> KafkaError:
    """
    What is told to who was reading a segment that went meanwhile.
    """
    reason = f"offset {span.offset} was let go while it was read"
    return KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, reason)


def _found_on_disk(file: File, span: Span) -> Found:
    """
    The same for what is not in the page cache. The system sees that a file is read from one end to the other, and
    reads ahead better than we could.
    """
    return _found(file.read, span, always_check=True)


def _found(source: Source, span: Span, *, always_check: bool) -> Found:
    """
    The batch of the offset and those behind it, as many as fit, are good, and are there without more waiting.
    """
    try:
        return _found_from(span.segment.position_of(source, span.offset, span.end), source, span, always_check)
    except Damaged:
        position = _sought(source, span)
        if position is None:
            raise
    return _found_from(position, source, span, always_check)


def _position(source: Source, span: Span) -> int:
    try:
        return span.segment.position_of(source, span.offset, span.end)
    except Damaged:
        position = _sought(source, span)
        if position is None:
            raise
        return position


def _sought(source: Source, span: Span) -> int | None:
    """
    Where the batch stands that has the offset, if it is good: damage before it may tell anything of what is behind.
    """
    indexes, offset = span.segment.indexes.offsets, span.offset - span.segment.base_offset
    _, position = indexes.at_most(FIRST, offset)
    _, border = indexes.at_least(FIRST, offset) or (0, position + _SOUGHT)
    while position <= border:
        for found in seek(source, position, span.end, lambda base: base <= span.offset):
            if isinstance(found, Batch):
                if found.header.last_offset >= span.offset:
                    return position
                position += len(found.data)
                break
            position += found
            if position > border:
                return None
        else:
            return None
    return None


def _found_from(start: int, source: Source, span: Span, always_check: bool) -> Found:
    at = start
    pieces, left = list[bytes](), span.max_bytes
    next_offset: int | None = max(span.offset, span.segment.base_offset)
    try:
        while at < span.end and (left > 0 or not pieces):
            first = span.at_least_one and not pieces
            asked = span._replace(offset=_ANY if next_offset is None else next_offset, max_bytes=left)
            data, next_offset = _piece(source, asked._replace(at_least_one=first), at, always_check=always_check)
            if not data:
                break
            pieces.append(data)
            at += len(data)
            left -= len(data)
    except (Damaged, NotCached):
        if not pieces:
            raise
    return Found(start, at, pieces, next_offset)


def _piece(source: Source, span: Span, at: int, *, always_check: bool) -> Piece:
    """
    Some of them, from a position where one begins: those before the first that is no good.
    """
    borders, end = span.segment.indexes.offsets, span.end
    try:
        piece = cut_piece(source, borders, at, end, min(span.max_bytes, PIECE_BYTES), span.at_least_one)
        if not piece.data and span.max_bytes > PIECE_BYTES:
            piece = cut_piece(source, borders, at, end, span.max_bytes, False)
        if always_check or span.segment.is_unchecked(at, at + len(piece.data)):
            following = span.end_offset if at + len(piece.data) == end else piece.next_offset
            check(piece.data, at, span.offset, following, span.epoch_at)
    except Damaged as damaged:
        before = damaged.position - at
        if before <= 0:
            raise
        # Once more, for what was found by its head alone may stand behind other damage.
        span = span._replace(max_bytes=before, at_least_one=False)
        return _piece(source, span, at, always_check=always_check)
    return piece
