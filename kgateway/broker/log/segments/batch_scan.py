"""
Walks over the batches of a segment file by the fields that all headers have in common, and cuts runs of whole batches.

To find a batch only headers are read, since each tells where the next batch begins; `scan` reads whole batches and
checks their CRC. A header is believed unless it is impossible: a batch that would be too small or reach past the end is
damage.
"""

import struct
from collections.abc import Callable, Iterator
from typing import NamedTuple

from kgateway.broker.log.files.disk import File
from kgateway.broker.log.segments.index import SECOND, Index
from kgateway.plurals import counted
from kgateway.records.batch import HEADER_SIZE, Batch, crc_holds, read_batch
from kgateway.wire.errors import Malformed
from kgateway.wire.types import Buffer

# Of a header: base offset, length of what follows these two, and at 23 the last offset's distance from the base.
_head = struct.Struct(">qi11xi")
BASE_OFFSET_AND_LENGTH = struct.Struct(">qi")
_LENGTH_END = 12
_WINDOW = 4096
SCAN_BYTES = 1 << 20

Source = Callable[[int, int], Buffer]  # position, size -> the bytes there
EpochAt = Callable[[int], int | None]  # offset -> the leader epoch in which it was given, if that is known


class NotCached(Exception):
    """
    The page cache does not have it: a read would wait for the disk.
    """


class Damaged(Exception):
    """
    No batch can be what stands at this position of a segment file.
    """

    def __init__(self, position: int, reason: str) -> None:
        super().__init__(f"at byte {position}: {reason}")
        self.position = position
        self.reason = reason


class Damage(NamedTuple):
    """
    A damaged part of a segment. Batches may follow it; if it is torn, its size does not tell where.
    """

    position: int
    size: int
    reason: str
    torn: bool
    misplaced: bool = False  # its bytes are good, but its offset is wrong, or that of the batch before
    next_offset: int | None = None  # the offset after it, if that is known


class BatchRun(NamedTuple):
    """
    Whole batches out of a segment, and the offset of the next one if that was seen.
    """

    data: bytes
    next_offset: int | None


class Scratch:
    """
    Reads from the page cache into one buffer again and again: the result is to be copied before the next read.
    """

    def __init__(self, size: int) -> None:
        self._view = memoryview(bytearray(size))

    def source(self, file: File) -> Source:
        """
        The source for a file. It raises NotCached if the disk would be needed.
        """

        def read(position: int, size: int) -> memoryview:
            view = self._view if size <= len(self._view) else memoryview(bytearray(size))
            view = view[:size]
            if file.read_into(view, position) < size:
                raise NotCached
            return view

        return read


def locate_batch(source: Source, position: int, end: int, offset: int) -> int:
    """
    The position of the first batch, from this position on, that has the offset or a later one.
    """
    while position < end:
        window = source(position, min(_WINDOW, end - position))
        at = 0
        while at + _head.size <= len(window):
            base, length, delta = _head.unpack_from(window, at)
            _check_length(position + at, length, end)
            if base + delta >= offset:
                return position + at
            at += _LENGTH_END + length
        if not at:
            raise Damaged(position, _too_short(len(window)))
        position += at
    return end


def cut_piece(source: Source, borders: Index, start: int, end: int, max_bytes: int, at_least_one: bool) -> BatchRun:
    """
    As many whole batches as fit; with `at_least_one` the first even if it does not fit.
    """
    limit, next_offset = min(start + max_bytes, end), None
    if limit < end:
        limit, next_offset = _last_border(source, borders, start, limit, end)
        if limit == start and at_least_one:
            limit, next_offset = _end_of_first(source, start, end), None
    return BatchRun(bytes(source(start, limit - start)), next_offset)


def _last_border(source: Source, borders: Index, start: int, limit: int, end: int) -> tuple[int, int | None]:
    """
    The position and offset of the batch that reaches over the limit; the limit and `None` if a batch ends there.
    """
    _, indexed = borders.at_most(SECOND, limit)
    position = seen = max(indexed, start)
    window: Buffer = b""
    while position < limit:
        if position + _head.size > seen + len(window):
            window, seen = source(position, min(_WINDOW, end - position)), position
        if len(window) < _head.size:
            raise Damaged(position, _too_short(len(window)))
        base, length, _ = _head.unpack_from(window, position - seen)
        _check_length(position, length, end)
        if position + _LENGTH_END + length > limit:
            return position, base
        position += _LENGTH_END + length
    return position, None


def _end_of_first(source: Source, start: int, end: int) -> int:
    _, length, _ = _head.unpack_from(source(start, min(_head.size, end - start)))
    _check_length(start, length, end)
    return start + _LENGTH_END + int(length)


def _check_length(position: int, length: int, end: int) -> None:
    if not HEADER_SIZE - _LENGTH_END <= length <= end - position - _LENGTH_END:
        raise Damaged(position, f"a batch of {_LENGTH_END + length} bytes, with {end - position} left")


def scan(source: Source, start: int, end: int, first_offset: int) -> Iterator[Batch | Damage]:
    """
    Yield every batch, checked as a whole; `first_offset` is the least offset that the first can have.
    """
    position, expected = start, first_offset
    data: Buffer = b""
    data_start = start
    while position < end:
        if position + HEADER_SIZE > data_start + len(data):
            data, data_start = source(position, min(SCAN_BYTES, end - position)), position
        try:
            size = _size_at(data, position - data_start, position, end)
            if position + size > data_start + len(data):
                data, data_start = source(position, min(max(SCAN_BYTES, size), end - position)), position
            batch = read_batch(data, position - data_start)
        except (Damaged, Malformed) as error:
            reason = error.reason if isinstance(error, Damaged) else str(error)
            yield Damage(position, end - position, reason, True)
            return
        following = expected + batch.header.last_offset_delta + 1
        if batch.header.base_offset != expected and _offset_at(source, position + size, end) == following:
            # The batch that follows shows that only the offset of this one is wrong.
            yield _misplaced(batch, position, expected, torn=False)._replace(next_offset=following)
            expected = following
        else:
            damage = _fault(batch, position, expected)
            yield damage or batch
            expected = batch.header.last_offset + 1 if not damage else expected
        position += size


def check_batches(data: bytes, position: int, offset: int, following: int | None, epoch_at: EpochAt) -> None:
    """
    Refuse bytes of a segment, read from the start of a batch, if they are not what was written: the first batch must
    have this offset, each later one the next offsets, and `following` must be the offset after the last one, if it is
    known. Each batch must have the leader epoch of its offset, if that is known.

    CRCs cover neither. If two batches do not fit together, neither is believed.
    """
    start, last, expected = position, position, None
    for found in scan(lambda at, size: data[at : at + size], 0, len(data), 0):
        if isinstance(found, Damage):
            raise Damaged(last if found.misplaced and found.torn else start + found.position, found.reason)
        base_offset = found.header.base_offset
        if expected is None:
            expected = min(base_offset, offset)  # the first batch may begin before the offset
        if base_offset != expected:
            raise Damaged(last, f"offset {base_offset} follows, where {expected} should")
        epoch = epoch_at(base_offset)
        if epoch not in (None, found.header.partition_leader_epoch):
            raise Damaged(position, f"leader epoch {found.header.partition_leader_epoch}, where {epoch} should be")
        last, position = position, position + len(found.data)
        expected = found.header.last_offset + 1
    if following is not None and expected not in (None, following):
        raise Damaged(last, f"offset {following} follows, where {expected} should")


def _size_at(data: Buffer, at: int, position: int, end: int) -> int:
    if len(data) - at < _head.size:
        raise Damaged(position, _too_short(len(data) - at))
    _, length, _ = _head.unpack_from(data, at)
    _check_length(position, length, end)
    return _LENGTH_END + int(length)


def _fault(batch: Batch, position: int, expected: int) -> Damage | None:
    header = batch.header
    if not crc_holds(batch):
        return Damage(position, header.size, "the CRC of the batch does not match its contents", False)
    if header.base_offset < expected or header.last_offset_delta < 0:
        return _misplaced(batch, position, expected, torn=True)
    return None


def _misplaced(batch: Batch, position: int, expected: int, *, torn: bool) -> Damage:
    header = batch.header
    reason = f"a batch with the offsets {header.base_offset} to {header.last_offset}, where {expected} is next"
    return Damage(position, header.size, reason, torn, misplaced=True)


def _offset_at(source: Source, position: int, end: int) -> int | None:
    if end - position < _head.size:
        return None
    base, _, _ = _head.unpack_from(source(position, _head.size))
    return int(base)


def is_unfinished(source: Source, position: int, end: int, next_offset: int) -> bool:
    """
    Whether the bytes at this position are the beginning of the next batch, which was being written, and not a whole
    batch with a wrong length.
    """
    left = end - position
    if left < BASE_OFFSET_AND_LENGTH.size:
        return True
    base, length = BASE_OFFSET_AND_LENGTH.unpack_from(source(position, BASE_OFFSET_AND_LENGTH.size))
    if base != next_offset or length <= left - BASE_OFFSET_AND_LENGTH.size:
        return False
    if left < HEADER_SIZE:
        return True
    whole = bytearray(source(position, left))
    BASE_OFFSET_AND_LENGTH.pack_into(whole, 0, base, left - BASE_OFFSET_AND_LENGTH.size)
    try:
        return not crc_holds(read_batch(whole))
    except Malformed:
        return True


def _too_short(left: int) -> str:
    return f"{counted(left, 'byte')} left, but a batch has at least {HEADER_SIZE}"
