"""
Where the records of a batch stand among its bytes, with the key of each: what compaction and the check of keys need to
know of millions of records, and no more; and the timestamp of one, for who asks. `record.py` says how a record is laid
out, and reads all of it.
"""

from collections.abc import Iterator

from kgateway.records.payload import Payload, malformed
from kgateway.wire.varints import more_uvarint

# Start and end among the bytes, with its length; offset delta; key; whether it has a value. A plain tuple: to make one
# of the named kind costs as much as to read the record.
Entry = tuple[int, int, int, bytes | None, bool]


def entries(payload: Payload, count: int) -> Iterator[Entry]:
    """
    So many records, one after the other; Malformed where they are not there, or more than these.
    """
    data, pos = payload
    try:
        for _ in range(count):
            start = pos
            length = data[pos]
            pos += 1
            if length > 127:
                length, pos = more_uvarint(data, pos, length)
            end = pos + (length >> 1)
            at = pos + 2  # behind the attributes and a byte of the timestamp
            while data[at - 1] > 127:
                at += 1
            delta = data[at]
            at += 1
            if delta > 127:
                delta, at = more_uvarint(data, at, delta)
            size = data[at]
            at += 1
            if size > 127:
                size, at = more_uvarint(data, at, size)
            key = None
            if not size & 1:  # else a negative number, for null
                key = data[at : at + (size >> 1)]
                at += size >> 1
            has_value = not data[at] & 1
            if at >= end or length & 1 or delta & 1:
                raise ValueError("a record is longer than it says, or stands before its batch")
            yield start, end, delta >> 1, key, has_value
            pos = end
    except (IndexError, ValueError) as wrong:
        raise malformed("records", pos, f"no record can be read here: {wrong}") from None
    if pos != len(data):
        raise malformed("records", pos, f"the records do not end with the batch, which has {len(data)} bytes")


def timestamp_at(data: bytes, start: int) -> tuple[int, int, int]:
    """
    How much later than its batch the record is that starts here, one of those that `entries` has found; and between
    which bytes it says so.
    """
    at = start
    while data[at] > 127:
        at += 1
    at += 2  # behind the length and the attributes
    delta, end = data[at], at + 1
    if delta > 127:
        try:
            delta, end = more_uvarint(data, end, delta, 64)
        except ValueError as wrong:
            raise malformed("timestamp_delta", at, str(wrong)) from None
    return (delta >> 1) ^ -(delta & 1), at, end
