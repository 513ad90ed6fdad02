"""
Walks over the batches of a file that may be damaged, and goes on behind the damage.

A batch with damaged bytes still tells where the next begins, if what follows it is a batch. Where it is not, the next
good batch is looked for.
"""

from collections.abc import Iterator
from pathlib import Path

from kgateway.broker.log.found_files import numbered
from kgateway.broker.log.seeking import seek
from kgateway.broker.log.segment import LET_GO
from kgateway.broker.log.walking import Damage, Source, scan
from kgateway.records.batch import HEADER_SIZE, Batch, BatchHeader, read_header
from kgateway.wire.malformed import Malformed


def walk(source: Source, end: int, base_offset: int) -> Iterator[Batch | Damage]:
    """
    All of a file: each batch, or the part where there is none, follows the one before it.
    """
    position, expected = 0, base_offset
    while position < end:
        doubtful: Damage | None = None
        for found in scan(source, position, end, expected):
            if isinstance(found, Batch):
                if doubtful:
                    yield doubtful
                    doubtful = None
                expected = found.header.last_offset + 1
                yield found
            elif doubtful or found.torn:
                doubtful = doubtful or found
                break
            else:
                doubtful = found
        if doubtful is None:
            return
        if doubtful.position + doubtful.size == end and not doubtful.torn:  # the last batch
            position = end
        else:
            position, expected = _next_good(source, doubtful.position, end, base_offset)
        yield doubtful._replace(size=position - doubtful.position)


def _next_good(source: Source, damaged: int, end: int, base_offset: int) -> tuple[int, int]:
    """
    Where the next good batch stands, and with which offset.
    """
    position = damaged + 1
    for found in seek(source, position, end, lambda offset: offset >= base_offset):
        if isinstance(found, Batch):
            return position, found.header.base_offset
        position += found
    return end, base_offset


def base_of(path: Path) -> int:
    """
    The offset with which the batches of a file begin at the earliest, as its name tells.
    """
    found = numbered(path.name.removesuffix(LET_GO))
    return found[0] if found else 0


def header_at(source: Source, position: int, end: int) -> BatchHeader | None:
    """
    What stands there as the header of a batch, if it can be one.
    """
    try:
        return read_header(source(position, min(HEADER_SIZE, end - position)))
    except Malformed:
        return None
