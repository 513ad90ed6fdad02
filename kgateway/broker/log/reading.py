"""
Reading batches for consumers: at once where the page cache has them, else in a thread, so that one who reads old
records stalls nobody.

What comes from the disk is checked before it is given out, and so is, once, what an earlier process has written. Good
batches before a damaged one are given out; who asks for that one is told CORRUPT_MESSAGE.
"""

from functools import partial
from typing import NamedTuple

from twisted.internet.defer import Deferred
from twisted.logger import Logger
from twisted.python.failure import Failure

from kgateway.broker.log.partition_log import End, PartitionLog
from kgateway.broker.log.parts import LogParts, plain
from kgateway.broker.log.segment import Segment
from kgateway.broker.log.walking import Damaged, NotCached, Piece, Source, check, cut_piece
from kgateway.wire.errors import ErrorCode, KafkaError

_READ_MAX = 8 << 20  # at once, where a consumer would take more


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


class Reader:
    """
    Reads the log of one partition.
    """

    __slots__ = ("_log", "_parts", "_reported")
    _logger = Logger()

    def __init__(self, log: PartitionLog, parts: LogParts) -> None:
        self._log = log
        self._parts = parts
        self._reported: set[str] = set()

    def read(self, offset: int, limit: End, max_bytes: int, at_least_one: bool) -> bytes | Deferred[bytes]:
        """
        Whole batches, from the one on that has the offset, which is before the limit.
        """
        segment = self._log.segment_of(offset)
        is_last = segment.base_offset == limit.base_offset
        end, end_offset = (limit.position, limit.offset) if is_last else (segment.size, segment.next_offset)
        span = Span(segment, end, end_offset, offset, max(0, min(max_bytes, _READ_MAX)), at_least_one)
        if not segment.is_loaded:
            return self._from_disk(span)
        try:
            source = self._parts.scratch.source(self._parts.files.get(segment.path))
            start, piece = _piece(source, span, always_check=False)
        except NotCached:
            return self._from_disk(span)
        except (Damaged, OSError) as error:
            raise self._refusal(span, error) from None
        return self._given(span, start, piece)

    def _from_disk(self, span: Span) -> Deferred[bytes]:
        files = self._parts.files
        try:
            file = files.hold(span.segment.path)
        except OSError as error:
            raise self._refusal(span, error) from None

        def done(found: tuple[int, Piece]) -> bytes:
            files.let_go(file)
            self._parts.loaded.used(span.segment)
            return self._given(span, *found)

        def failed(failure: Failure) -> Failure:
            files.let_go(file)
            error = failure.value
            return Failure(self._refusal(span, error)) if isinstance(error, Damaged | OSError) else failure

        return self._parts.in_thread(partial(_piece, file.read, span, always_check=True)).addCallbacks(done, failed)

    def _given(self, span: Span, start: int, piece: Piece) -> bytes:
        """
        What was read; whoever reads on will find the next batch at once.
        """
        end = start + len(piece.data)
        span.segment.checked(start, end)
        next_offset = span.end_offset if end == span.end else piece.next_offset
        if next_offset is not None:
            span.segment.expect(next_offset, end)
        return piece.data

    def _refusal(self, span: Span, error: Damaged | OSError) -> KafkaError:
        """
        What the client is told; the operator is told once.
        """
        code = ErrorCode.CORRUPT_MESSAGE if isinstance(error, Damaged) else ErrorCode.KAFKA_STORAGE_ERROR
        what = str(error) if isinstance(error, Damaged) else plain(error)
        reason = (
            f"{span.segment.path.parent.name}/{span.segment.path.name} cannot be read for offset {span.offset}: {what}"
        )
        if what not in self._reported:
            self._reported.add(what)
            self._logger.error("{reason}. `kgateway log check` tells more.", reason=reason)
        return KafkaError(code, reason)


def _piece(source: Source, span: Span, *, always_check: bool) -> tuple[int, Piece]:
    """
    Where the batch of the offset begins, and it with those behind it, as many as fit and are good.
    """
    segment, end = span.segment, span.end
    start = segment.position_of(source, span.offset, end)
    try:
        piece = cut_piece(source, segment.offsets, start, end, span.max_bytes, span.at_least_one)
        if always_check or segment.is_unchecked(start, start + len(piece.data)):
            check(piece.data, start)
    except Damaged as damaged:
        if damaged.position <= start:
            raise
        piece = cut_piece(source, segment.offsets, start, end, damaged.position - start, False)
    return start, piece
