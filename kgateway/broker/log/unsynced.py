"""
What a process finds of a log that may not outlast the machine, and how it is made to.
"""

from pathlib import Path

from kgateway.broker.log.due import Doubtful, Due, NotTried, files_beside
from kgateway.broker.log.index import FIRST
from kgateway.broker.log.partition_log import PartitionLog
from kgateway.broker.log.segment import Segment


def unsynced(log: PartitionLog, synced: int) -> list[Doubtful]:
    """
    The parts behind the last sync, which reached up to this offset. If a later one failed, the system takes for written
    what never was, and nothing tells so of a process that was killed at once.
    """
    found = list[Doubtful]()
    for segment in log.segments:
        start = _synced_part(segment, synced)
        if start < segment.size:
            found.append(Doubtful(segment.path, start, segment.size - start))
    return found


def _synced_part(segment: Segment, synced: int) -> int:
    """
    How much of it, or a little less.
    """
    if synced >= segment.next_offset:
        return segment.size
    _, position = segment.indexes.offsets.at_most(FIRST, synced - segment.base_offset - 1)
    return position


def make_last(log: PartitionLog, parts: list[Doubtful]) -> None:
    """
    Sync these parts, and what lies beside them; an OSError where that cannot be.
    """
    files = list[Path]()
    for segment in log.segments:
        if any(part.path == segment.path for part in parts):
            files += [segment.path, *files_beside(segment.path, segment.next_offset)]
    try:
        Due(parts, files, [log.folder, log.folder.parent]).sync(log.files.disk, [], set())
    except NotTried as not_tried:
        raise not_tried.error from None  # where it was tried in vain, too, opening the log again tries all of it again
