"""
Which transactions were aborted, as Kafka's files beside the segments tell:

    .txnindex    2  version, 0
                 8  the producer
                 8  the first offset of the transaction
                 8  the last, that of the marker that ends it
                 8  the last stable offset then
"""

from struct import Struct

from kgateway.spark.aborted import Aborted
from kgateway.spark.segments import Segments

_SUFFIX = ".txnindex"
_ENTRY = Struct(">hqqqq")


def aborted_in(segments: Segments, start: int, end: int) -> Aborted:
    """
    Those that reach into the range.
    """
    found = list[tuple[int, int]]()
    for name in segments.files.names(segments.folder):
        if name.endswith(_SUFFIX):
            data = segments.files.read(segments.folder / name)
            for _, producer, first, last, _ in _ENTRY.iter_unpack(data[: len(data) - len(data) % _ENTRY.size]):
                if last >= start and first < end:
                    found.append((producer, first))
    return Aborted(found)
