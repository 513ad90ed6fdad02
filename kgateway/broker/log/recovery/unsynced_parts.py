"""
Finds what an earlier process may have tried to sync in vain: everything after the recovery point. It is written again
before it is synced (docs/decisions/0004-log.md, "A failed sync", says why).
"""

from pathlib import Path

from kgateway.broker.log.segments.fsync import NotTried, SyncJob, UnsyncedPart, side_files_of
from kgateway.broker.log.segments.index import FIRST
from kgateway.broker.log.segments.segment import Segment
from kgateway.broker.log.segments.segment_list import SegmentList


def unsynced_parts(segment_list: SegmentList, synced: int) -> list[UnsyncedPart]:
    found = list[UnsyncedPart]()
    for segment in segment_list.segments:
        start = _synced_size(segment, synced)
        if start < segment.size:
            found.append(UnsyncedPart(segment.path, start, segment.size - start))
    return found


def _synced_size(segment: Segment, synced: int) -> int:
    if synced >= segment.next_offset:
        return segment.size
    _, position = segment.indexes.offsets.at_most(FIRST, synced - segment.base_offset - 1)
    return position


def sync_parts(segment_list: SegmentList, parts: list[UnsyncedPart]) -> None:
    """
    Write and sync these parts and their side files; raises OSError if that fails.
    """
    files = list[Path]()
    for segment in segment_list.segments:
        if any(part.path == segment.path for part in parts):
            files += [segment.path, *side_files_of(segment.path, segment.next_offset)]
    try:
        SyncJob(parts, files, [segment_list.folder, segment_list.folder.parent]).sync(
            segment_list.files.disk, [], set()
        )
    except NotTried as not_tried:
        raise not_tried.error from None  # also after a failed sync: opening the log again writes everything again
