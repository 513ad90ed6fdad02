"""
What compaction leaves of a batch, by Kafka's rules.

A record is kept if no later one of its key is known. A tombstone, a record without a value, is removed too, once
everybody had time to see it: the first compaction that meets it writes into its batch when that will be, its delete
horizon (KIP-534). Records without a key are the last of none. Kept are records that a round has not read yet, batches
whose records cannot be read, and the very last record, so that readers get to the end.

Records of an aborted transaction are removed, and count as the last of no key. A marker is removed like a tombstone,
once nothing is left of its transaction: no batch of the producer has come since the marker before. It is not removed at
once if the log begins after it by now, because after a loss of power the producers are known from the base of a segment
on.

Batches are neither joined nor split, because each is one append of one producer. One that has no records left is kept
as a header if it is the last of its producer, from which sequence numbers continue.

The memory for the last offsets of keys is bounded. When it is full the round ends before the record that has no room,
and the next one continues there, as Kafka's cleaner does.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import NamedTuple, Protocol

from kgateway.broker.partition.transactions import AbortedTransaction
from kgateway.cluster.config_rows import LONG_MAX
from kgateway.cluster.partition import EARLIEST_OFFSET
from kgateway.records.batch import Batch, BatchHeader
from kgateway.records.batch_rewrite import emptied, thinned
from kgateway.records.control import read_marker
from kgateway.records.record import Entry, entries, payload_of
from kgateway.wire.errors import Malformed

# No two keys are expected to share a digest. One of 16 bytes, as Kafka's, would take 64 bytes instead of 48.
_DIGEST_BYTES = 15
_KEY_BYTES = 48 + 32  # a short key or a digest, and its offset
_SORTED_BYTES = 8 + 4  # an offset in a sorted list, and half as much again while it is sorted
_SLOT_BYTES = 20  # of a dict: a number, and two thirds of a row


class KnownOffsets(Protocol):
    """
    The last offset of each key before the end.
    """

    end: int  # later keys are not known

    def __len__(self) -> int: ...

    def is_latest(self, key: bytes, offset: int) -> bool: ...


def keys_that_fit(memory_bytes: int) -> int:
    """
    How many keys LastOffsets can hold in this much memory, at least one: otherwise no round would make progress.

    A dict has a power of two of slots. When two thirds are taken, it moves to twice as many, and has both for a moment.
    """
    slots, room = 8, 1
    while True:
        rows = slots * 2 // 3
        room = max(room, min((memory_bytes - slots * _SLOT_BYTES) // (_KEY_BYTES + _SORTED_BYTES), rows))
        if 3 * slots * _SLOT_BYTES + rows * _KEY_BYTES > memory_bytes:
            return room
        slots *= 2


class LastOffsets:
    """
    The last offset of each key. Short keys are kept as they are, longer ones as digests, which are longer than the
    short ones.
    """

    def __init__(self, room: int) -> None:
        self._room = room  # for this many keys
        self._offsets: dict[bytes, int] = {}
        self.end = EARLIEST_OFFSET  # later keys are not known

    def __len__(self) -> int:
        return len(self._offsets)

    def note(self, key: bytes, offset: int) -> bool:
        """
        Remember the last record of a key so far. Returns whether there was room for it.
        """
        if len(key) >= _DIGEST_BYTES:
            key = blake2b(key, digest_size=_DIGEST_BYTES).digest()
        offsets = self._offsets
        if len(offsets) >= self._room and key not in offsets:
            return False
        offsets[key] = offset
        return True

    def note_all(self, keys: Sequence[bytes], first_offset: int) -> int | None:
        """
        Remember the keys of consecutive offsets. Returns the offset of the first for which there was no room.
        """
        offsets = range(first_offset, first_offset + len(keys))
        if len(self._offsets) + len(keys) > self._room:
            note = self.note
            return next((offset for key, offset in zip(keys, offsets, strict=True) if not note(key, offset)), None)
        if keys and max(map(len, keys)) >= _DIGEST_BYTES:
            keys = [
                blake2b(key, digest_size=_DIGEST_BYTES).digest() if len(key) >= _DIGEST_BYTES else key for key in keys
            ]
        self._offsets.update(zip(keys, offsets, strict=True))
        return None

    def sorted_offsets(self) -> list[int]:
        return sorted(self._offsets.values())

    def is_latest(self, key: bytes, offset: int) -> bool:
        if len(key) >= _DIGEST_BYTES:
            key = blake2b(key, digest_size=_DIGEST_BYTES).digest()
        return self._offsets.get(key, offset) <= offset


class TransactionEnds:
    """
    Outcomes of transactions, asked for batch by batch from any offset on.
    """

    def __init__(self, aborted: Sequence[AbortedTransaction]) -> None:
        self._left: list[AbortedTransaction] = []
        self._ahead = sorted(aborted, key=lambda transaction: transaction.first_offset, reverse=True)
        self._aborted: dict[int, AbortedTransaction] = {}  # by producer, the last one that began
        self._written: set[int] = set()  # producers with a batch since their last marker

    def is_aborted(self, header: BatchHeader) -> bool:
        """
        Whether the next batch belongs to a transaction that was aborted.
        """
        if not header.is_transactional:
            return False
        self._reach(header.last_offset)
        self._written.add(header.producer_id)
        transaction = self._aborted.get(header.producer_id)
        return transaction is not None and header.last_offset <= transaction.last_offset

    def marks_nothing(self, batch: Batch) -> bool:
        """
        Whether the next batch, a marker, marks nothing any more: it has no records, or its transaction has none left. A
        marker that cannot be read is kept.
        """
        header = batch.header
        if not header.records_count:
            return True
        try:
            marker = read_marker(batch)
        except Malformed:
            return False
        if marker is None:
            return False
        self._reach(header.last_offset)
        is_left = header.producer_id in self._written
        self._written.discard(header.producer_id)
        transaction = self._aborted.get(header.producer_id)
        if transaction and is_left and header.last_offset == transaction.last_offset:
            self._left.append(transaction)
        return not is_left

    def taken(self) -> list[AbortedTransaction]:
        """
        The aborted transactions of which something is left, and whose markers were met since the last call.
        """
        left, self._left = self._left, []
        return left

    def _reach(self, offset: int) -> None:
        while self._ahead and self._ahead[-1].first_offset <= offset:
            transaction = self._ahead.pop()
            self._aborted[transaction.producer_id] = transaction


class LastBatch(NamedTuple):
    epoch: int
    last_offset: int | None  # `None`: a marker, of which only the epoch is remembered

    def is_that_of(self, header: BatchHeader) -> bool:
        if self.last_offset is None:
            return header.is_control and header.producer_epoch == self.epoch
        return header.last_offset == self.last_offset


class RoundTimes(NamedTuple):
    """
    The time of a round, and for how long deletions are kept after it.
    """

    now_ms: int
    delete_retention_ms: int
    deletions_stay_from: int = LONG_MAX  # tombstones from this offset on are kept for ever

    @property
    def horizon_ms(self) -> int:
        """
        When deletions that are seen for the first time may be removed.
        """
        return min(self.now_ms + self.delete_retention_ms, LONG_MAX)


@dataclass(slots=True)
class RecordFilter:
    latest: KnownOffsets
    log_start: int
    times: RoundTimes
    last_batches: Mapping[int, LastBatch]  # by producer id
    ended: TransactionEnds
    records_seen: int = 0
    records_kept: int = 0
    unreadable: int = 0  # batches

    def left_of(self, batch: Batch) -> Batch | None:
        """
        What remains of a batch: the very batch if everything does, `None` if nothing does.
        """
        is_undecided, left = self.by_header(batch)
        return self.by_records(batch) if is_undecided else left

    def by_header(self, batch: Batch) -> tuple[bool, Batch | None]:
        """
        Whether the records of the next batch decide what remains of it, or else what does.
        """
        header = batch.header
        if header.is_control:
            return False, self._left_of_marker(batch, self.ended.marks_nothing(batch))
        is_aborted = self.ended.is_aborted(header)
        if header.last_offset < self.log_start:
            return False, self.emptied(batch)
        if header.base_offset >= self.latest.end or (is_aborted and self._is_last(header)):
            return False, batch
        if is_aborted:
            self.records_seen += header.records_count
            return False, self.emptied(batch)
        return True, None

    def by_records(self, batch: Batch) -> Batch | None:
        try:
            payload = payload_of(batch)
            found = list(entries(payload, batch.header.records_count))
            return self._with(batch, payload.data, self._kept(batch.header, found))
        except Malformed:
            self.unreadable += 1
            return batch

    def with_latest(self, batch: Batch, data: bytes, latest: list[Entry]) -> Batch | None:
        """
        What remains of a batch with these latest records of their keys, none of which is the last of the log.
        """
        shows_deletions = self.shows_deletions(batch.header)
        try:
            return self._with(batch, data, [entry for entry in latest if entry[4] or shows_deletions])
        except Malformed:
            self.unreadable += 1
            return batch

    def _left_of_marker(self, batch: Batch, marks_nothing: bool) -> Batch | None:
        header = batch.header
        if not marks_nothing or self._is_last(header):
            return batch
        if not header.records_count:
            return self.emptied(batch)
        if header.has_delete_horizon:
            return self.emptied(batch) if self.times.now_ms >= header.base_timestamp else batch
        try:
            payload = payload_of(batch)
            found = list(entries(payload, header.records_count))
            return thinned(header, payload.data, found, self.times.horizon_ms)
        except Malformed:
            self.unreadable += 1
            return batch

    def _with(self, batch: Batch, data: bytes, kept: list[Entry]) -> Batch | None:
        count = batch.header.records_count
        if not kept:
            left = self.emptied(batch)
        else:
            horizon_ms = self.new_horizon(batch.header, any(not entry[4] for entry in kept))
            is_whole = len(kept) == count and horizon_ms is None
            left = batch if is_whole else thinned(batch.header, data, kept, horizon_ms)
        self.records_seen += count
        self.records_kept += len(kept)
        return left

    def _kept(self, header: BatchHeader, found: list[Entry]) -> list[Entry]:
        base, end, is_latest = header.base_offset, self.latest.end, self.latest.is_latest
        shows_deletions = self.shows_deletions(header)
        return [
            entry
            for entry in found
            if base + entry[2] >= end - 1
            or (entry[3] is not None and (entry[4] or shows_deletions) and is_latest(entry[3], base + entry[2]))
        ]

    def shows_deletions(self, header: BatchHeader) -> bool:
        """
        Whether the tombstones of a batch are kept if they are the latest of their keys.
        """
        is_shown = not header.has_delete_horizon or self.times.now_ms < header.base_timestamp
        return is_shown or header.last_offset >= self.times.deletions_stay_from

    def new_horizon(self, header: BatchHeader, has_tombstones: bool) -> int | None:
        """
        When the deletions in it may be removed, if that is decided now.
        """
        return self.times.horizon_ms if has_tombstones and not header.has_delete_horizon else None

    def _is_last(self, header: BatchHeader) -> bool:
        return header.last_offset >= self.latest.end - 1

    def emptied(self, batch: Batch) -> Batch | None:
        header = batch.header
        last = self.last_batches.get(header.producer_id)
        if last is None or not last.is_that_of(header):
            return None
        return emptied(header) if header.records_count else batch
