"""
Finds records by the timestamps that they really have, in batches that follow one another. The largest timestamp in a
header comes from the producer, and may be anything.
"""

from collections.abc import Iterable, Iterator
from itertools import islice

from kgateway.cluster.partition import EARLIEST_OFFSET, TimestampAndOffset
from kgateway.records.batch import NO_TIMESTAMP, Batch, TimestampType
from kgateway.records.record import Record, records
from kgateway.wire.errors import Malformed

_LARGEST = (1 << 63) - 1


def timestamps(batch: Batch) -> Iterator[int]:
    """
    The timestamp of each record, as far as the records can be read; with LogAppendTime the one that all have, once.
    """
    if batch.header.timestamp_type is TimestampType.LOG_APPEND_TIME:
        yield batch.header.max_timestamp
        return
    for record in _readable(batch):
        yield _time_of(record)


def records_from(start: int, batch: Batch) -> Iterator[tuple[int, int]]:
    """
    Offset and timestamp of the records by which a time is found, from an offset on. A record's offset is counted: the
    offset in the record comes from the producer as well, unless compaction has removed others.
    """
    first = batch.header.base_offset
    if batch.header.records_count <= batch.header.last_offset_delta:
        return _after_compaction(start, batch)
    times = enumerate(timestamps(batch), first)
    if batch.header.timestamp_type is TimestampType.LOG_APPEND_TIME:
        return ((max(offset, start), time) for offset, time in times if start <= batch.header.last_offset)
    return islice(times, max(start - first, 0), None)


def _after_compaction(start: int, batch: Batch) -> Iterator[tuple[int, int]]:
    return ((record.offset, _time_of(record)) for record in _readable(batch) if record.offset >= start)


def _readable(batch: Batch) -> Iterator[Record]:
    """
    The records as far as they can be read; consumers cannot read further either.
    """
    try:
        yield from records(batch)
    except Malformed:
        return


def _time_of(record: Record) -> int:
    """
    The timestamp; base and delta may add up to an impossible one.
    """
    return record.timestamp if record.timestamp <= _LARGEST else NO_TIMESTAMP


def find_time(found: Iterable[Batch], timestamp: int, start: int = EARLIEST_OFFSET) -> TimestampAndOffset | None:
    """
    The first record, from the log start on, with this timestamp or a later one.
    """
    return next((record for record in _records(found, start) if record.timestamp >= timestamp), None)


def find_max_time(found: Iterable[Batch], start: int = EARLIEST_OFFSET) -> TimestampAndOffset | None:
    """
    The first record with the largest timestamp; `None` if no record has one.
    """
    largest = max(_records(found, start), key=lambda record: record.timestamp, default=None)
    return largest if largest and largest.timestamp > NO_TIMESTAMP else None


def _records(found: Iterable[Batch], start: int) -> Iterator[TimestampAndOffset]:
    for batch in found:
        for offset, timestamp in records_from(start, batch):
            yield TimestampAndOffset(offset, timestamp, batch.header.partition_leader_epoch)
