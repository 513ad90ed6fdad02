"""
Reads the records of a round in columns, those of many batches at a time, with numpy. The result is the same, byte for
byte, as that of reading them one by one, and takes a sixth of the time if batches have many records.

The first pass notes the last offset of each key (offset_columns.py). After it, the dirty part needs no keys any more:
the records that stay are those at the noted offsets. Only the clean part is searched for keys.

Columns hold only what is regular: readable records, whose offsets grow and lie within their batch. A group with
anything else is taken apart into batches. A batch that nobody can read is not decoded here: the rules decide what
becomes of it. `Unfit` is raised for a batch that can only be read record by record; then the whole round is.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import accumulate, pairwise

import numpy as np

from kgateway.broker.log.compaction.key_hash import PADDING
from kgateway.broker.log.compaction.offset_columns import OffsetColumns, Unfit
from kgateway.broker.log.compaction.record_filter import RecordFilter
from kgateway.records.batch import CODEC_BITS, DELETE_HORIZON_BIT, HEADER_SIZE, Batch, TimestampType
from kgateway.records.batch_rewrite import thinned, with_records
from kgateway.records.record import Entry, entries, payload_of
from kgateway.records.record_columns import RecordBodies, RecordColumns, record_columns
from kgateway.records.varint_columns import TooLong
from kgateway.wire.errors import Malformed
from kgateway.wire.types import Buffer

_GROUP_BYTES = 1 << 20  # of records that are read together: their columns stay in the processor's cache


@dataclass(slots=True)
class Group:
    """
    Batches, and the columns of their records.
    """

    batches: list[Batch]
    data: bytes
    counts: list[int]
    columns: RecordColumns
    offsets: np.ndarray


class ColumnReader:
    def __init__(self, latest: OffsetColumns, group_bytes: int = _GROUP_BYTES) -> None:
        self.latest = latest
        self._group_bytes = group_bytes
        self._first_dirty = 0
        self._staying = np.empty(0, np.int64)  # offsets of the dirty part, of the last records of keys

    def note(self, batches: Iterable[Batch], first_dirty: int) -> int | None:
        """
        Remember the keys of batches from this offset on. Returns the offset of the first for which there is no room.
        """
        self._first_dirty = first_dirty
        full_at = next((at for at in map(self._note, _groups(batches, self._group_bytes)) if at is not None), None)
        full_at = self.latest.merge() if full_at is None else full_at
        self._staying = self.latest.sorted_offsets()
        return full_at

    def _note(self, found: Group | Batch) -> int | None:
        if not isinstance(found, Group):
            return None  # such a batch is kept, and supersedes nothing
        columns = found.columns
        rows = np.flatnonzero((columns.key_sizes >= 0) & (found.offsets >= self._first_dirty))
        return self.latest.note(found.data, columns.keys[rows], columns.key_sizes[rows], found.offsets[rows])

    def left(self, rules: RecordFilter, batches: Iterable[Batch]) -> Iterator[tuple[Batch, Batch | None]]:
        """
        What remains of each batch.
        """
        for window in _windows(batches, self._group_bytes):
            found = [(batch, *rules.by_header(batch)) for batch in window]
            by_records = self._by_records(rules, [batch for batch, is_undecided, _ in found if is_undecided])
            for batch, is_undecided, left in found:
                yield batch, next(by_records) if is_undecided else left

    def _by_records(self, rules: RecordFilter, batches: list[Batch]) -> Iterator[Batch | None]:
        for found in _groups(batches, self._group_bytes):
            if isinstance(found, Group):
                yield from self._left_of_group(rules, found)
            else:
                yield rules.by_records(found)

    def _left_of_group(self, rules: RecordFilter, group: Group) -> Iterator[Batch | None]:
        has_value = (np.frombuffer(group.data, np.uint8)[group.columns.values] & 1) == 0
        kept = np.flatnonzero(self._is_kept(rules, group, has_value))
        borders = np.searchsorted(kept, np.cumsum([0, *group.counts]))
        tombstones = np.cumsum([0, *~has_value[kept]])[borders]
        has_tombstones = (tombstones[1:] > tombstones[:-1]).tolist()
        rows = group.batches, group.counts, pairwise(borders.tolist()), has_tombstones
        for batch, count, (first, end), has_tombstone in zip(*rows, strict=True):
            try:
                if first == end:
                    left = rules.emptied(batch)
                elif has_tombstone or end - first < count:
                    left = _with(group, batch, kept[first:end], rules.new_horizon(batch.header, has_tombstone))
                else:
                    left = batch
            except Malformed:
                rules.unreadable += 1
                yield batch
                continue
            rules.records_seen += count
            rules.records_kept += end - first
            yield left

    def _is_kept(self, rules: RecordFilter, group: Group, has_value: np.ndarray) -> np.ndarray:
        is_kept = self._is_latest(group)
        headers = [batch.header for batch in group.batches]
        if any(header.attributes & DELETE_HORIZON_BIT for header in headers):
            is_kept &= has_value | np.repeat([rules.shows_deletions(header) for header in headers], group.counts)
        return is_kept | (group.offsets >= rules.latest.end - 1)

    def _is_latest(self, group: Group) -> np.ndarray:
        offsets = group.offsets
        is_latest = np.zeros(len(offsets), bool)
        dirty = int(np.searchsorted(offsets, self._first_dirty))
        if dirty:
            columns = group.columns
            rows = np.flatnonzero(columns.key_sizes[:dirty] >= 0)
            last = self.latest.latest_of(group.data, columns.keys[rows], columns.key_sizes[rows])
            is_latest[rows] = last <= offsets[rows]
        if dirty < len(offsets):
            staying = self._staying[slice(*np.searchsorted(self._staying, [offsets[dirty], offsets[-1] + 1]))]
            places = np.searchsorted(offsets, staying)
            is_latest[places] = offsets[places] == staying
        return is_latest


def _with(group: Group, batch: Batch, rows: np.ndarray, horizon_ms: int | None) -> Batch:
    """
    The batch with the records of these rows, at least one.
    """
    header, columns = batch.header, group.columns
    if horizon_ms is not None:
        kept: list[Entry] = [
            (start, end, 0, None, False)
            for start, end in zip(columns.starts[rows].tolist(), columns.ends[rows].tolist(), strict=True)
        ]
        return thinned(header, group.data, kept, horizon_ms)
    if len(rows) == header.records_count:
        return batch
    is_created = header.timestamp_type is TimestampType.CREATE_TIME
    latest = header.base_timestamp + int(columns.time_deltas[rows].max()) if is_created else header.max_timestamp
    return with_records(header, _copied(group, rows), len(rows), latest)


def _copied(group: Group, rows: np.ndarray) -> bytes:
    """
    The bytes of these records; neighbours are copied together.
    """
    begins, ends = np.ones(len(rows), bool), np.ones(len(rows), bool)
    begins[1:] = ends[:-1] = np.diff(rows) > 1
    starts, stops = group.columns.starts[rows[begins]], group.columns.ends[rows[ends]]
    return b"".join([group.data[start:stop] for start, stop in zip(starts.tolist(), stops.tolist(), strict=True)])


def _windows(batches: Iterable[Batch], size_min: int) -> Iterator[list[Batch]]:
    window, size = list[Batch](), 0
    for batch in batches:
        window.append(batch)
        size += len(batch.data)
        if size >= size_min:
            yield window
            window, size = [], 0
    yield window


def _groups(batches: Iterable[Batch], size_min: int) -> Iterator[Group | Batch]:
    """
    The batches in groups, or alone if they cannot be read. Raises Unfit if they can, but not in columns.
    """
    group, parts, size = list[Batch](), list[Buffer](), 0
    for batch in batches:
        part = _decompressed(batch) if batch.header.attributes & CODEC_BITS else batch.data[HEADER_SIZE:]
        group.append(batch)
        parts.append(part)
        size += len(part)
        if size >= size_min:
            yield from _group(group, parts)
            group, parts, size = [], [], 0
    if group:
        yield from _group(group, parts)


def _group(batches: list[Batch], parts: list[Buffer]) -> Iterator[Group | Batch]:
    try:
        yield _read(batches, parts)
    except (Malformed, IndexError, TooLong, Unfit):
        if len(batches) == 1:
            yield _checked(batches[0])
            return
        for batch, part in zip(batches, parts, strict=True):
            yield from _group([batch], [part])


def _decompressed(batch: Batch) -> Buffer:
    """
    The records, or nothing if they cannot be decompressed, which is too little for any record.
    """
    try:
        data, start = payload_of(batch)
    except Malformed:
        return b""
    return memoryview(data)[start:]


def _read(batches: list[Batch], parts: list[Buffer]) -> Group:
    headers = [batch.header for batch in batches]
    counts = [header.records_count for header in headers]
    if min(counts) < 0:
        raise Unfit("a batch declares a negative number of records")
    borders = [*accumulate(map(len, parts), initial=0)]
    bodies = RecordBodies(b"".join([*parts, PADDING]), headers, borders[:-1], borders[1:])
    columns = record_columns(bodies)
    bases = np.repeat([header.base_offset for header in headers], counts)
    last_deltas = np.repeat([header.last_offset_delta for header in headers], counts)
    offsets, deltas = bases + columns.offset_deltas, columns.offset_deltas
    is_within = (columns.values < columns.ends) & (deltas >= 0) & (deltas <= last_deltas)
    if not (is_within.all() and (offsets[1:] > offsets[:-1]).all()):
        raise Unfit("a record is not what it declares, or records are not in order")
    return Group(batches, bodies.data, counts, columns, offsets)


def _checked(unreadable: Batch) -> Batch:
    header = unreadable.header
    try:
        found = list(entries(payload_of(unreadable), header.records_count))
    except Malformed:
        return unreadable
    raise Unfit(f"the batch at offset {header.base_offset} has {len(found)} irregular records")
