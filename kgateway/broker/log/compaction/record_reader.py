"""
Reads the records of a round one by one.
"""

from collections.abc import Iterable, Iterator

from kgateway.broker.log.compaction.record_filter import LastOffsets, RecordFilter
from kgateway.records.batch import Batch
from kgateway.records.record import entries, payload_of
from kgateway.wire.errors import Malformed


class RecordReader:
    def __init__(self, latest: LastOffsets) -> None:
        self.latest = latest

    def note(self, batches: Iterable[Batch], first_dirty: int) -> int | None:
        """
        Remember the keys of batches from this offset on. Returns the offset of the first for which there is no room.
        """
        for batch in batches:
            full_at = self._note_keys(batch, first_dirty)
            if full_at is not None:
                return full_at
        return None

    def _note_keys(self, batch: Batch, first_dirty: int) -> int | None:
        base, note = batch.header.base_offset, self.latest.note
        try:
            found = list(entries(payload_of(batch), batch.header.records_count))
        except Malformed:
            return None  # such a batch is kept, and supersedes nothing
        for _, _, delta, key, _ in found:
            offset = base + delta
            if key is not None and offset >= first_dirty and not note(key, offset):
                return offset
        return None

    def left(self, rules: RecordFilter, batches: Iterable[Batch]) -> Iterator[tuple[Batch, Batch | None]]:
        """
        What remains of each batch.
        """
        for batch in batches:
            yield batch, rules.left_of(batch)
