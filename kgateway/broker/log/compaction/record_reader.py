"""
Reads the records of a round one batch after the other, without numpy.

The first pass notes the last offset of each key. After it, the dirty part needs no keys any more: the records that stay
are those at the noted offsets. Only the clean part is searched for keys.

This is true if record i of each dirty batch has the offset delta i and a key (record_scan.py), which is how producers
write batches. If one dirty batch is different, the second pass searches the dirty part for keys, too.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence

from kgateway.broker.log.compaction.record_filter import LastOffsets, RecordFilter
from kgateway.broker.log.compaction.record_scan import entries_at, keys_of
from kgateway.records.batch import Batch, BatchHeader
from kgateway.records.record import entries, payload_of
from kgateway.wire.errors import Malformed


class RecordReader:
    def __init__(self, latest: LastOffsets) -> None:
        self.latest = latest
        self._first_dirty = 0
        self._is_regular = True  # the dirty part
        self._staying: Sequence[int] = ()  # offsets of the last records of keys

    def note(self, batches: Iterable[Batch], first_dirty: int) -> int | None:
        """
        Remember the keys of batches from this offset on. Returns the offset of the first for which there is no room.
        """
        self._first_dirty = first_dirty
        full_at = next((at for at in map(self._note, batches) if at is not None), None)
        if self._is_regular:
            self._staying = self.latest.sorted_offsets()
        return full_at

    def _note(self, batch: Batch) -> int | None:
        header = batch.header
        is_dirty = header.base_offset >= self._first_dirty  # as a whole
        try:
            payload = payload_of(batch)
            if is_dirty and header.records_count == header.last_offset_delta + 1:
                keys = keys_of(payload.data, payload.start, header.records_count)
                if keys is not None:
                    return self.latest.note_all(keys, header.base_offset)
            self._is_regular = self._is_regular and not is_dirty
            found = list(entries(payload, header.records_count))
        except Malformed:
            self._is_regular = self._is_regular and not is_dirty
            return None  # such a batch is kept, and supersedes nothing
        base, note = header.base_offset, self.latest.note
        for _, _, delta, key, _ in found:
            offset = base + delta
            if key is not None and offset >= self._first_dirty and not note(key, offset):
                return offset
        return None

    def left(self, rules: RecordFilter, batches: Iterable[Batch]) -> Iterator[tuple[Batch, Batch | None]]:
        """
        What remains of each batch.
        """
        for batch in batches:
            is_undecided, left = rules.by_header(batch)
            if is_undecided:
                left = self._by_offsets(rules, batch) if self._is_noted(batch.header) else rules.by_records(batch)
            yield batch, left

    def _is_noted(self, header: BatchHeader) -> bool:
        """
        Whether the first pass has noted the keys of all records, none of which is the last.
        """
        return self._is_regular and header.base_offset >= self._first_dirty and header.last_offset < self.latest.end - 1

    def _by_offsets(self, rules: RecordFilter, batch: Batch) -> Batch | None:
        base, staying = batch.header.base_offset, self._staying
        first = bisect_left(staying, base)
        end = bisect_left(staying, batch.header.last_offset + 1, first)
        places = [offset - base for offset in staying[first:end]]
        data, start = payload_of(batch) if places else (b"", 0)
        return rules.with_latest(batch, data, entries_at(data, start, places))
