"""
Walks over damage in a segment, for recovery, cold reads and `kgateway log check` alike.

A batch with damaged bytes still tells where the next one begins, if a good batch stands there. Otherwise that is
searched for: any byte may be the first of a batch, if what follows looks like a batch, and has a possible offset and
the right CRC.
"""

from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import NamedTuple

from kgateway.broker.log.segments.batch_scan import BASE_OFFSET_AND_LENGTH, SCAN_BYTES, Damage, Source, scan
from kgateway.broker.log.segments.file_names import DELETED_SUFFIX, numbered
from kgateway.records.batch import HEADER_SIZE, Batch, BatchHeader, crc_holds, read_batch, read_header
from kgateway.wire.errors import Malformed

_MAGIC, _MAGIC_AT = b"\x02", 16

Fits = Callable[[int], bool]  # whether a batch may have this base offset


class GoodBatch(NamedTuple):
    position: int
    batch: Batch


Search = Generator[None, None, GoodBatch | None]  # yields after each piece that was searched in vain


def search(source: Source, start: int, end: int, fits: Fits, stop: int | None = None) -> Search:
    """
    Find the first good batch that begins at `start` or after it, and before `stop`.
    """
    position, stop = start, end if stop is None else stop
    while position < stop and end - position >= HEADER_SIZE:
        data = bytes(source(position, min(SCAN_BYTES, end - position)))
        for at in _possible_starts(data, fits, end - position):
            if position + at >= stop:
                return None
            batch = _good(source, position + at, end)
            if batch:
                return GoodBatch(position + at, batch)
        yield
        position += len(data) - HEADER_SIZE + 1
    return None


def search_after(source: Source, damage: Damage, end: int, fits: Fits) -> Search:
    """
    Find the good batch with which a segment continues after damage.
    """
    if not damage.torn:
        following = damage.position + damage.size
        found = yield from search(source, following, end, fits, following + 1)
        if found:
            return found
    return (yield from search(source, damage.position + 1, end, fits))


def search_offset(source: Source, start: int, stop: int, end: int, offset: int) -> int | None:
    """
    The position of the good batch that has the offset, if it begins between `start` and `stop`.
    """
    while found := _result(search(source, start, end, lambda base: base <= offset, stop)):
        if found.batch.header.last_offset >= offset:
            return found.position
        start = found.position + len(found.batch.data)
    return None


def walk(source: Source, end: int, base_offset: int) -> Iterator[Batch | Damage]:
    """
    Go over a whole file: yields each batch and each damaged part, in the order in which they stand.
    """
    position, expected = 0, base_offset
    while position < end:
        damage: Damage | None = None
        for found in scan(source, position, end, expected):
            if isinstance(found, Damage):
                damage = found
                break
            yield found
            expected = found.header.last_offset + 1
        if damage is None:
            return
        if damage.next_offset is not None:
            position, expected = damage.position + damage.size, damage.next_offset
        else:
            following = _result(search_after(source, damage, end, lambda offset: offset >= base_offset))
            position = following.position if following else end
            expected = following.batch.header.base_offset if following else expected
        yield damage._replace(size=position - damage.position)


def _result(steps: Search) -> GoodBatch | None:
    while True:
        try:
            next(steps)
        except StopIteration as done:
            found: GoodBatch | None = done.value
            return found


def _possible_starts(data: bytes, fits: Fits, left: int) -> Iterator[int]:
    at = data.find(_MAGIC, _MAGIC_AT)
    while 0 <= at <= len(data) - HEADER_SIZE + _MAGIC_AT:
        start = at - _MAGIC_AT
        base_offset, length = BASE_OFFSET_AND_LENGTH.unpack_from(data, start)
        if HEADER_SIZE - BASE_OFFSET_AND_LENGTH.size <= length <= left - start - BASE_OFFSET_AND_LENGTH.size and fits(
            base_offset
        ):
            yield start
        at = data.find(_MAGIC, at + 1)


def _good(source: Source, position: int, end: int) -> Batch | None:
    try:
        _, length = BASE_OFFSET_AND_LENGTH.unpack_from(source(position, BASE_OFFSET_AND_LENGTH.size))
        batch = read_batch(bytes(source(position, BASE_OFFSET_AND_LENGTH.size + length)))
    except Malformed:
        return None
    return batch if crc_holds(batch) and batch.header.last_offset_delta >= 0 else None


def base_of(path: Path) -> int:
    """
    The least offset of a file's batches, by its name.
    """
    found = numbered(path.name.removesuffix(DELETED_SUFFIX))
    return found[0] if found else 0


def header_at(source: Source, position: int, end: int) -> BatchHeader | None:
    """
    The batch header at this position, if there can be one.
    """
    try:
        return read_header(source(position, min(HEADER_SIZE, end - position)))
    except Malformed:
        return None
