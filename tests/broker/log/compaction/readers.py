"""
The two ways in which a round reads records, with room for this many keys.
"""

from collections.abc import Callable

from kgateway.broker.log.compaction.column_reader import ColumnReader
from kgateway.broker.log.compaction.compaction_round import Reader
from kgateway.broker.log.compaction.offset_columns import KEY_BYTES, OffsetColumns
from kgateway.broker.log.compaction.record_filter import ENTRY_BYTES, LastOffsets
from kgateway.broker.log.compaction.record_reader import RecordReader

ROOM = 10_000

MakeReader = Callable[[int], Reader]


def one_by_one(room: int = ROOM) -> RecordReader:
    return RecordReader(LastOffsets(room * ENTRY_BYTES))


def in_columns(room: int = ROOM, group_bytes: int = 1 << 20, merged_at_once: int = 1 << 10) -> ColumnReader:
    return ColumnReader(OffsetColumns(room * KEY_BYTES, merged_at_once), group_bytes)


def in_small_columns(room: int = ROOM) -> ColumnReader:
    """
    Batch by batch, so that no batch is read before the one before it is noted.
    """
    return in_columns(room, group_bytes=1, merged_at_once=1)
