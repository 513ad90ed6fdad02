"""
Walks over the batches of a file that may be damaged, and goes on behind the damage.

A batch with damaged bytes still tells where the next begins, if what follows it is a batch. Where it is not, the next
entry of the offset index at which a batch stands tells where to go on.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from pathlib import Path

from kgateway.broker.log.walking import Damage, Source, scan
from kgateway.records.batch import HEADER_SIZE, Batch, BatchHeader, read_header
from kgateway.wire.malformed import Malformed

Entries = Sequence[tuple[int, int]]  # of an offset index: the last offset of a batch, from the base, and its position


def walk(source: Source, end: int, base_offset: int, entries: Entries) -> Iterator[Batch | Damage]:
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
            position = _next_start(source, doubtful.position, end, base_offset, entries)
            expected = base_offset  # the number of offsets that were told before may have been the damage
        yield doubtful._replace(size=position - doubtful.position)


def _next_start(source: Source, damaged: int, end: int, base_offset: int, entries: Entries) -> int:
    number = bisect_right(entries, damaged, key=lambda entry: entry[1])
    for last_offset, position in entries[number:]:
        if damaged < position <= end - HEADER_SIZE:
            header = header_at(source, position, end)
            if header and header.last_offset - base_offset == last_offset:
                return position
    return end


def base_of(path: Path) -> int:
    """
    The offset with which the batches of a file begin at the earliest, as its name tells.
    """
    found = re.match(r"\d{20}\.(?!log\.)", path.name)
    return int(path.stem) if found else 0


def header_at(source: Source, position: int, end: int) -> BatchHeader | None:
    """
    What stands there as the header of a batch, if it can be one.
    """
    try:
        return read_header(source(position, min(HEADER_SIZE, end - position)))
    except Malformed:
        return None
