"""
The timestamps that the records of a batch really have.
"""

from collections.abc import Iterator
from itertools import islice

from kgateway.records.batch import NO_TIMESTAMP, Batch, TimestampType
from kgateway.records.record import Record, records
from kgateway.wire.malformed import Malformed

_LARGEST = (1 << 63) - 1


def timestamps(batch: Batch) -> Iterator[int]:
    """
    Of record after record, as far as they can be read; with LogAppendTime that of the first, which all have.
    """
    if batch.header.timestamp_type is TimestampType.LOG_APPEND_TIME:
        yield batch.header.max_timestamp
        return
    for record in _readable(batch):
        yield _time_of(record)


def records_from(start: int, batch: Batch) -> Iterator[tuple[int, int]]:
    """
    Offset and timestamp of those records, from an offset on, by which a time is found. A record is where it stands:
    what it says of its own offset is the producer's word as well, unless compaction has taken others out.
    """
    first = batch.header.base_offset
    if batch.header.records_count <= batch.header.last_offset_delta:
        return _left(start, batch)
    times = enumerate(timestamps(batch), first)
    if batch.header.timestamp_type is TimestampType.LOG_APPEND_TIME:
        return ((max(offset, start), time) for offset, time in times if start <= batch.header.last_offset)
    return islice(times, max(start - first, 0), None)


def _left(start: int, batch: Batch) -> Iterator[tuple[int, int]]:
    """
    Of a batch that is not all there any more.
    """
    return ((record.offset, _time_of(record)) for record in _readable(batch) if record.offset >= start)


def _readable(batch: Batch) -> Iterator[Record]:
    """
    As far as its producer wrote records, and these; consumers cannot read on either.
    """
    try:
        yield from records(batch)
    except Malformed:
        return


def _time_of(record: Record) -> int:
    """
    Base and delta may add up to more than a timestamp can be.
    """
    return record.timestamp if record.timestamp <= _LARGEST else NO_TIMESTAMP
