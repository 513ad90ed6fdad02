"""
Finds the next good batch behind damage that does not tell where it is.

Any byte may be where a batch begins; one that looks like it, has an offset that can be, and the right CRC, is one.
"""

from collections.abc import Callable, Iterator

from kgateway.broker.log.walking import PIECE, PLACE, Source
from kgateway.records.batch import HEADER_SIZE, Batch, crc_holds, read_batch
from kgateway.wire.malformed import Malformed

_MAGIC, _MAGIC_AT = b"\x02", 16

Fits = Callable[[int], bool]  # whether a batch may have this base offset


def seek(source: Source, start: int, end: int, fits: Fits) -> Iterator[Batch | int]:
    """
    The first good batch from the start on, if there is one; before it, how many bytes of a piece were looked at in
    vain. Where it stands is the sum of those, and of the start.
    """
    position = start
    while end - position >= HEADER_SIZE:
        data = bytes(source(position, min(PIECE, end - position)))
        for at in _candidates(data, fits, end - position):
            batch = _good(source, position + at, end)
            if batch:
                yield at
                yield batch
                return
        passed = len(data) - HEADER_SIZE + 1
        yield passed
        position += passed


def _candidates(data: bytes, fits: Fits, left: int) -> Iterator[int]:
    """
    Where a batch may begin whose header is in the data.
    """
    at = data.find(_MAGIC, _MAGIC_AT)
    while 0 <= at <= len(data) - HEADER_SIZE + _MAGIC_AT:
        start = at - _MAGIC_AT
        base_offset, length = PLACE.unpack_from(data, start)
        if HEADER_SIZE - PLACE.size <= length <= left - start - PLACE.size and fits(base_offset):
            yield start
        at = data.find(_MAGIC, at + 1)


def _good(source: Source, position: int, end: int) -> Batch | None:
    try:
        _, length = PLACE.unpack_from(source(position, PLACE.size))
        batch = read_batch(bytes(source(position, PLACE.size + length)))
    except Malformed:
        return None
    return batch if crc_holds(batch) and batch.header.last_offset_delta >= 0 else None
