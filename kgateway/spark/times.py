"""
The first record of a time in the files of a partition. Indexes tell where to look, the heads of batches and then the
records what is there.
"""

from collections.abc import Iterator

from kgateway.broker.log.index import FIRST, OFFSETS, TIMES
from kgateway.broker.log.segment_indexes import INDEX, TIME_INDEX
from kgateway.client.offsets import Extent, Found
from kgateway.records.batch import Batch
from kgateway.records.record import records
from kgateway.spark.segments import Segments

_NOTHING = Found(None, None)


def first_at(segments: Segments, extent: Extent, timestamp_ms: int) -> Found:
    """
    The first record of this time or later that may be read.
    """
    bases = segments.bases()
    for base, following in zip(bases, [*bases[1:], extent.end], strict=True):
        if following > extent.start and base < extent.end:
            for batch in _candidates(segments, base, extent, timestamp_ms, is_last=following == extent.end):
                for record in records(batch):
                    if record.timestamp >= timestamp_ms and extent.start <= record.offset < extent.end:
                        return Found(record.offset, record.timestamp)
    return _NOTHING


def _candidates(segments: Segments, base: int, extent: Extent, timestamp_ms: int, *, is_last: bool) -> Iterator[Batch]:
    """
    The batches of a segment that may have it. The last one's indexes may lag behind.
    """
    times = segments.index(base, TIME_INDEX, TIMES)
    if not is_last and len(times) and times.entry(-1)[FIRST] < timestamp_ms:
        return
    _, offset = times.at_most(FIRST, timestamp_ms - 1)
    _, position = segments.index(base, INDEX, OFFSETS).at_most(FIRST, offset)
    for run in segments.batches(base, extent.start, extent.end, position):
        for batch in run.batches:
            if batch.header.max_timestamp >= timestamp_ms and not batch.header.is_control:
                yield batch
