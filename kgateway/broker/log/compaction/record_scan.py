"""
Finds keys and records in batches that producers wrote: record i has the offset delta i and a key. Other batches are
read by `kgateway.records.record.entries`, which is several times slower.

These loops see each record of a log, so they are written for speed: one position, plain numbers, no calls. In a
compiled wheel, record_scan.pxd makes the numbers those of C. Indexes are still checked.
"""

from collections.abc import Sequence

from kgateway.records.record import Entry
from kgateway.wire.varints import more_uvarint


def keys_of(data: bytes, pos: int, count: int) -> list[bytes] | None:  # noqa: C901  # without calls
    """
    The keys of the records that begin at this position and take the rest of the bytes. None if there are not exactly
    this many records, or if they are not regular; `entries` accepts every batch whose keys are found here.
    """
    keys = list[bytes]()
    found = keys.append
    double = 0  # the offset delta that is expected, as it is written
    try:
        for _ in range(count):
            size = data[pos]
            if size < 128:
                end = pos + 1 + (size >> 1)
                at = pos + 3
            elif (high := data[pos + 1]) < 128:
                end = pos + 2 + ((size & 127 | high << 7) >> 1)
                at = pos + 4
            else:
                size, pos = more_uvarint(data, pos + 1, size)
                end = pos + (size >> 1)
                at = pos + 2
            while data[at - 1] > 127:  # the timestamp
                at += 1
            delta = data[at]
            if delta > 127:
                at += 1
                high = data[at]
                if high < 128:
                    delta += (high << 7) - 128
                else:
                    delta, at = more_uvarint(data, at, delta)
                    at -= 1
            key_size = data[at + 1]
            at += 2
            if key_size > 127:
                key_size, at = more_uvarint(data, at, key_size)
            if size & 1 or key_size & 1 or delta != double:
                return None
            double += 2
            pos = at
            at += key_size >> 1
            if at >= end:
                return None
            found(data[pos:at])
            pos = end
    except (IndexError, ValueError):
        return None
    return keys if pos == len(data) else None


def entries_at(data: bytes, pos: int, places: Sequence[int]) -> list[Entry]:
    """
    Some of these records, without their keys. The places of the records are in order, and `keys_of` has read them all.
    """
    entries = list[Entry]()
    number = -1
    start = at = end = pos
    for place in places:
        while number < place:
            start = end
            size = data[start]
            if size < 128:
                at = start + 1
            elif (high := data[start + 1]) < 128:
                size = size & 127 | high << 7
                at = start + 2
            else:
                size, at = more_uvarint(data, start + 1, size)
            end = at + (size >> 1)
            number += 1
        at += 2
        while data[at - 1] > 127:  # the timestamp
            at += 1
        while data[at] > 127:  # the offset delta
            at += 1
        size = data[at + 1]
        at += 2
        if size > 127:
            size, at = more_uvarint(data, at, size)
        entries.append((start, end, number, None, not data[at + (size >> 1)] & 1))
    return entries
