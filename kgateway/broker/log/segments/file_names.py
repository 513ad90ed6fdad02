"""
The names of a partition's files, as Kafka has them: an offset of twenty digits, and a suffix.
"""

import re
from collections.abc import Iterable

from kgateway.broker.log.segments.index import INDEX, TIME_INDEX
from kgateway.broker.partition.producer_snapshot import SNAPSHOT
from kgateway.broker.partition.transactions import ABORTED_INDEX
from kgateway.cluster.config_rows import LONG_MAX

LOG = ".log"
CLEANED_SUFFIX = ".cleaned"  # of a file that compaction has written, until it replaces others
DELETED_SUFFIX = ".deleted"  # of a deleted file, which is removed later
COMPACTED = "kgateway.compacted"  # decides which compacted segments count (segment_swap.py)
SUFFIXES = (LOG, INDEX, TIME_INDEX, ABORTED_INDEX, SNAPSHOT)  # of a segment's files
_SEGMENT = re.compile(r"[0-9]{20}\.log(\..*)?")
_NUMBERED = re.compile(r"([0-9]{20})(\.[a-z]+)")


def file_name(base_offset: int, suffix: str) -> str:
    """
    The name that Kafka gives a file that begins with this offset.
    """
    return f"{base_offset:020d}{suffix}"


def numbered(name: str) -> tuple[int, str] | None:
    """
    The offset and the suffix in the name of a segment's file or a snapshot; `None` for other names.
    """
    found = _NUMBERED.fullmatch(name)
    is_ours = found and found[2] in SUFFIXES and int(found[1]) <= LONG_MAX
    return (int(found[1]), found[2]) if found and is_ours else None


def is_of_segment(name: str) -> bool:
    """
    Whether it names a segment, or what compaction, a deletion or recovery has made of one.
    """
    return _SEGMENT.fullmatch(name) is not None


def offsets_of(names: Iterable[str], suffix: str) -> list[int]:
    return sorted(found[0] for found in map(numbered, names) if found and found[1] == suffix)
