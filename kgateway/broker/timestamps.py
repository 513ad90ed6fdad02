"""
The timestamps that the records of a batch really have.
"""

from collections.abc import Iterator

from kgateway.records.batch import NO_TIMESTAMP, Batch, TimestampType
from kgateway.records.record import records
from kgateway.wire.malformed import Malformed

_LARGEST = (1 << 63) - 1


def timestamps(batch: Batch) -> Iterator[int]:
    """
    Of record after record, as far as they can be read; with LogAppendTime that of the first, which all have.
    """
    if batch.header.timestamp_type is TimestampType.LOG_APPEND_TIME:
        yield batch.header.max_timestamp
        return
    try:
        for record in records(batch):
            # Base and delta may add up to more than a timestamp can be.
            yield record.timestamp if record.timestamp <= _LARGEST else NO_TIMESTAMP
    except Malformed:
        return  # the producer wrote no records, or not these; consumers cannot read on either
