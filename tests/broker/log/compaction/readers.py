"""
The ways in which a round reads records, with room for this many keys, and the plainest one, with which they are
compared.
"""

from collections.abc import Callable, Iterable, Iterator

from kgateway.broker.log.compaction.column_reader import ColumnReader
from kgateway.broker.log.compaction.compaction_round import Reader
from kgateway.broker.log.compaction.offset_columns import KEY_BYTES, OffsetColumns
from kgateway.broker.log.compaction.record_filter import LastOffsets, RecordFilter
from kgateway.broker.log.compaction.record_reader import RecordReader
from kgateway.records.batch import Batch
from kgateway.records.record import entries, payload_of
from kgateway.wire.errors import Malformed

ROOM = 10_000

MakeReader = Callable[[int], Reader]


class PlainReader:
    """
    Reads one record after the other, and looks for the key of each in both passes.
    """

    def __init__(self, latest: LastOffsets) -> None:
        self.latest = latest

    def note(self, batches: Iterable[Batch], first_dirty: int) -> int | None:
        for batch in batches:
            base = batch.header.base_offset
            try:
                found = list(entries(payload_of(batch), batch.header.records_count))
            except Malformed:
                continue
            for _, _, delta, key, _ in found:
                offset = base + delta
                if key is not None and offset >= first_dirty and not self.latest.note(key, offset):
                    return offset
        return None

    def left(self, rules: RecordFilter, batches: Iterable[Batch]) -> Iterator[tuple[Batch, Batch | None]]:
        for batch in batches:
            yield batch, rules.left_of(batch)


def plain(room: int = ROOM) -> PlainReader:
    return PlainReader(LastOffsets(room))


def one_by_one(room: int = ROOM) -> RecordReader:
    return RecordReader(LastOffsets(room))


def in_columns(room: int = ROOM, group_bytes: int = 1 << 20, merged_at_once: int = 1 << 10) -> ColumnReader:
    return ColumnReader(OffsetColumns(room * KEY_BYTES, merged_at_once), group_bytes)


def in_small_columns(room: int = ROOM) -> ColumnReader:
    """
    Batch by batch, so that no batch is read before the one before it is noted.
    """
    return in_columns(room, group_bytes=1, merged_at_once=1)
