"""
Reads batches for consumers: at once if the page cache has them, else in a thread, so that a consumer of old records
stalls nobody.

Batches from the disk are checked before they are handed out, and batches that an earlier process has written are
checked once. Good batches before a damaged one are handed out; a request for the damaged one fails with
CORRUPT_MESSAGE.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from twisted.internet.defer import Deferred
from twisted.logger import Logger
from twisted.python.failure import Failure

from kgateway.broker.log.files.disk import File
from kgateway.broker.log.runtime import READ_BYTES, LogRuntime, describe_error
from kgateway.broker.log.segments.batch_scan import (
    BatchRun,
    Damaged,
    EpochAt,
    NotCached,
    Source,
    check_batches,
    cut_piece,
)
from kgateway.broker.log.segments.damage import search_offset
from kgateway.broker.log.segments.index import FIRST
from kgateway.broker.log.segments.segment import Segment
from kgateway.broker.log.segments.segment_list import LogEnd, SegmentList
from kgateway.log_messages import CANNOT_READ
from kgateway.records.batch import HEADER_SIZE, batches
from kgateway.wire.errors import ErrorCode, KafkaError

ReadResult = list[bytes] | Deferred[list[bytes]]
Again = Callable[[], ReadResult]

_ANY = (1 << 63) - 1
_COUNT, _NO_RECORDS = slice(HEADER_SIZE - 4, HEADER_SIZE), bytes(4)  # of the records in a batch
_SEARCHED = 1 << 20  # bytes after the last index entry, at most
_READ_MAX = 2 << 20  # at once, even if a consumer would take more: what is read waits in memory until it is sent


@dataclass(slots=True)
class ReadRequest:
    """
    What to read: from an offset of a segment up to a byte and an offset, which end the readable part.
    """

    segment: Segment
    end: int
    end_offset: int
    offset: int
    max_bytes: int
    at_least_one: bool
    epoch_at: EpochAt


@dataclass(slots=True)
class ReadBatches:
    """
    Whole batches in pieces, where they stand, and the offset after them if that is known.
    """

    start: int
    end: int
    pieces: list[bytes]
    next_offset: int | None


class Reader:
    __slots__ = ("_epoch_at", "_reported", "_runtime", "_segment_list")
    _log = Logger()

    def __init__(self, segment_list: SegmentList, runtime: LogRuntime, epoch_at: EpochAt) -> None:
        self._segment_list = segment_list
        self._runtime = runtime
        self._epoch_at = epoch_at
        self._reported: set[str] = set()

    def read(self, offset: int, limit: LogEnd, max_bytes: int, at_least_one: bool) -> ReadResult:
        """
        Read whole batches, from the one that has the offset on; the offset is below the limit. Batches without records,
        which compaction leaves, are not returned alone: librdkafka would believe that a record did not fit.
        """
        while True:
            data = self._read(offset, limit, max_bytes, at_least_one)
            if not isinstance(data, list):  # the usual case; isinstance of Deferred takes longer
                return data.addCallback(self._unless_empty, limit, max_bytes, at_least_one)
            following = _end_of_empty(data)
            if following is None:
                return data
            if following >= limit.offset:
                return []
            offset = following

    def _unless_empty(self, data: list[bytes], limit: LogEnd, max_bytes: int, at_least_one: bool) -> ReadResult:
        following = _end_of_empty(data)
        if following is None:
            return data
        return self.read(following, limit, max_bytes, at_least_one) if following < limit.offset else []

    def _read(self, offset: int, limit: LogEnd, max_bytes: int, at_least_one: bool) -> ReadResult:
        segment = self._segment_list.segment_of(offset)
        is_last = segment.base_offset == limit.segment_base
        end, end_offset = (limit.position, limit.offset) if is_last else (segment.size, segment.next_offset)
        request = ReadRequest(
            segment, end, end_offset, offset, max(0, min(max_bytes, _READ_MAX)), at_least_one, self._epoch_at
        )
        again = partial(self._read, offset, limit, max_bytes, at_least_one)
        if not segment.indexes.is_loaded:
            return self._from_disk(request, again)
        try:
            source = self._runtime.scratch.source(self._runtime.files.get(segment.path))
            found = _read_batches(source, request, always_check=False)
        except NotCached:
            return self._from_disk(request, again)
        except (Damaged, OSError) as error:
            raise self._refusal(request.segment, request.offset, error) from None
        return self._hand_out(request, found)

    def end_before(self, offset: int) -> LogEnd:
        """
        The position of the batch that has the offset: the end for a reader that may not read it.
        """
        segment = self._segment_list.segment_of(offset)
        try:
            source = self._runtime.files.get(segment.path).read
            request = ReadRequest(segment, segment.size, segment.next_offset, offset, 0, False, self._epoch_at)
            return LogEnd(offset, segment.base_offset, _position(source, request))
        except (Damaged, OSError) as error:
            raise self._refusal(segment, offset, error) from None

    def loaded(self, segment: Segment) -> None:
        """
        The indexes of a segment were loaded: keep them in memory as long as there is room.
        """
        if segment is not self._segment_list.segments[-1] and self._segment_list.has(
            segment
        ):  # appends need those of the active segment
            self._runtime.loaded.used(segment)

    def _from_disk(self, request: ReadRequest, again: Again) -> Deferred[list[bytes]]:
        """
        Read in a thread. `again` is called if compaction has replaced the segment meanwhile.
        """
        files = self._runtime.files
        try:
            file = files.hold(request.segment.path)
        except OSError as error:
            raise self._refusal(request.segment, request.offset, error) from None

        def done(found: ReadBatches) -> list[bytes]:
            files.release(file)
            self.loaded(request.segment)
            return self._hand_out(request, found)

        def failed(failure: Failure) -> Failure | list[bytes] | Deferred[list[bytes]]:
            files.release(file)
            error = failure.value
            if not self._segment_list.has(request.segment):
                return again() if request.offset >= self._segment_list.start_offset else Failure(_deleted(request))
            if isinstance(error, Damaged | OSError):
                return Failure(self._refusal(request.segment, request.offset, error))
            return failure

        return self._runtime.in_thread(partial(_read_on_disk, file, request)).addCallbacks(done, failed)

    def _hand_out(self, request: ReadRequest, found: ReadBatches) -> list[bytes]:
        request.segment.checked(found.start, found.end)
        next_offset = request.end_offset if found.end == request.end else found.next_offset
        if next_offset is not None:
            request.segment.remember_position(next_offset, found.end)
        return found.pieces

    def _refusal(self, segment: Segment, offset: int, error: Damaged | OSError) -> KafkaError:
        """
        The error for the client; the operator finds it in the log once.
        """
        code = ErrorCode.CORRUPT_MESSAGE if isinstance(error, Damaged) else ErrorCode.KAFKA_STORAGE_ERROR
        what = str(error) if isinstance(error, Damaged) else describe_error(error)
        path = segment.path
        name = f"{path.parent.name}/{path.name}"
        damage = f"{path.name} {what}"
        if damage not in self._reported:
            self._reported.add(damage)
            self._log.error(CANNOT_READ, file=name, offset=offset, what=what)
        return KafkaError(code, f"{name} cannot be read for offset {offset}: {what}")


def _end_of_empty(data: list[bytes]) -> int | None:
    """
    The offset after these batches, if none of them has a record.
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


def _deleted(request: ReadRequest) -> KafkaError:
    reason = f"offset {request.offset} was deleted while it was being read"
    return KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, reason)


def _read_on_disk(file: File, request: ReadRequest) -> ReadBatches:
    """
    Read what the page cache lacks. The system sees a sequential read, and reads ahead better than we could.
    """
    return _read_batches(file.read, request, always_check=True)


def _read_batches(source: Source, request: ReadRequest, *, always_check: bool) -> ReadBatches:
    try:
        return _read_from(
            request.segment.position_of(source, request.offset, request.end), source, request, always_check
        )
    except Damaged:
        position = _search_past_damage(source, request)
        if position is None:
            raise
    return _read_from(position, source, request, always_check)


def _position(source: Source, request: ReadRequest) -> int:
    try:
        return request.segment.position_of(source, request.offset, request.end)
    except Damaged:
        position = _search_past_damage(source, request)
        if position is None:
            raise
        return position


def _search_past_damage(source: Source, request: ReadRequest) -> int | None:
    """
    The position of the batch that has the offset, if it is good. Damage before it may have any length, so the indexes
    say where to begin and to end the search.
    """
    indexes, offset = request.segment.indexes.offsets, request.offset - request.segment.base_offset
    _, position = indexes.at_most(FIRST, offset)
    _, border = indexes.at_least(FIRST, offset) or (0, position + _SEARCHED)
    return search_offset(source, position, border + 1, request.end, request.offset)


def _read_from(start: int, source: Source, request: ReadRequest, always_check: bool) -> ReadBatches:
    at = start
    pieces, left = list[bytes](), request.max_bytes
    if request.offset < request.segment.base_offset:
        request = replace(request, offset=request.segment.base_offset)
    next_offset: int | None = request.offset
    try:
        while at < request.end and (left > 0 or not pieces):
            if pieces:
                offset = _ANY if next_offset is None else next_offset
                request = replace(request, offset=offset, max_bytes=left, at_least_one=False)
            data, next_offset = _piece(source, request, at, always_check=always_check)
            if not data:
                break
            pieces.append(data)
            at += len(data)
            left -= len(data)
    except (Damaged, NotCached):
        if not pieces:
            raise
    return ReadBatches(start, at, pieces, next_offset)


def _piece(source: Source, request: ReadRequest, at: int, *, always_check: bool) -> BatchRun:
    borders, end = request.segment.indexes.offsets, request.end
    try:
        piece = cut_piece(source, borders, at, end, min(request.max_bytes, READ_BYTES), request.at_least_one)
        if not piece.data and request.max_bytes > READ_BYTES:
            piece = cut_piece(source, borders, at, end, request.max_bytes, False)
        if always_check or request.segment.is_unchecked(at, at + len(piece.data)):
            following = request.end_offset if at + len(piece.data) == end else piece.next_offset
            check_batches(piece.data, at, request.offset, following, request.epoch_at)
    except Damaged as damaged:
        before = damaged.position - at
        if before <= 0:
            raise
        # Once more, because the damage that was found by its header alone may stand after other damage.
        request = replace(request, max_bytes=before, at_least_one=False)
        return _piece(source, request, at, always_check=always_check)
    return piece
