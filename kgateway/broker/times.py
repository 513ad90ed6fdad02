"""
Finds records by their timestamps, in batches that follow one another.
"""

from collections.abc import Iterable, Iterator

from kgateway.broker.timestamps import records_from
from kgateway.cluster.partition import EARLIEST_OFFSET, Found
from kgateway.records.batch import NO_TIMESTAMP, Batch


def find_time(found: Iterable[Batch], timestamp: int, start: int = EARLIEST_OFFSET) -> Found | None:
    """
    The first record with this timestamp or a later one; none before the offset with which the log starts.
    """
    return next((record for record in _records(found, start) if record.timestamp >= timestamp), None)


def find_max_time(found: Iterable[Batch], start: int = EARLIEST_OFFSET) -> Found | None:
    """
    The first of the records with the largest timestamp; none where no record has any.
    """
    largest = max(_records(found, start), key=lambda record: record.timestamp, default=None)
    return largest if largest and largest.timestamp > NO_TIMESTAMP else None


def _records(found: Iterable[Batch], start: int) -> Iterator[Found]:
    for batch in found:
        for offset, timestamp in records_from(start, batch):
            yield Found(offset, timestamp, batch.header.partition_leader_epoch)
