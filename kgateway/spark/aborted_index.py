"""
Which transactions were aborted, as the files beside the segments tell.
"""

from kgateway.broker.aborted import ABORTED_INDEX, read
from kgateway.spark.aborted import Aborted
from kgateway.spark.segments import Segments


def aborted_in(segments: Segments, start: int, end: int) -> Aborted:
    """
    Those that reach into the range.
    """
    found = list[tuple[int, int]]()
    for name in segments.files.names(segments.folder):
        if name.endswith(ABORTED_INDEX):
            for one in read(segments.files.read(segments.folder / name)):
                if one.last_offset >= start and one.first_offset < end:
                    found.append((one.producer_id, one.first_offset))
    return Aborted(found)
