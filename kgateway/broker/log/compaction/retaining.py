"""
What compaction leaves of a batch, by Kafka's rules.

A record stays if no later one of its key is known. One without a value, which says that its key is deleted, goes too,
once everybody had time to see it: the first compaction that meets it writes into the batch when that will be, its
delete horizon (KIP-534). Records without a key are the last of none. What a round does not know of yet stays, and so
do batches whose records cannot be read; and the very last record, so that readers get to the end.

Records of a transaction that was aborted go, and count as the last of no key. A marker goes like a deletion, once
nothing is left of its transaction; not at once where the log begins behind it by now, for after a loss of power the
producers are known from the border of a segment on.

Batches are neither joined nor parted, for each is one append of one producer. One that has nothing left stays as a
header where it is the last of its producer, from which sequence numbers go on.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from kgateway.broker.log.compaction.ended import EndedTransactions
from kgateway.broker.log.compaction.latest import LatestOffsets
from kgateway.cluster.config_rows import LONG_MAX
from kgateway.records.batch import Batch, BatchHeader
from kgateway.records.entries import Entry, entries
from kgateway.records.payload import payload_of
from kgateway.records.thinned import emptied, thinned
from kgateway.wire.malformed import Malformed


class LastBatch(NamedTuple):
    """
    The last batch of a producer that is remembered.
    """

    epoch: int
    last_offset: int | None  # `None`: a marker, of which only the epoch is

    def is_that_of(self, header: BatchHeader) -> bool:
        """
        Whether the batch with this header is the one.
        """
        if self.last_offset is None:
            return header.is_control and header.producer_epoch == self.epoch
        return header.last_offset == self.last_offset


class Times(NamedTuple):
    """
    When a round takes place, and how long deletions are shown after it.
    """

    now_ms: int
    delete_retention_ms: int
    deletions_stay_from: int = LONG_MAX  # the offset from which they are shown for ever

    @property
    def horizon_ms(self) -> int:
        """
        When those may go that are seen for the first time.
        """
        return min(self.now_ms + self.delete_retention_ms, LONG_MAX)


@dataclass(slots=True)
class Retaining:
    """
    The rules of one round.
    """

    latest: LatestOffsets
    log_start: int
    times: Times
    last_batches: Mapping[int, LastBatch]  # by producer id
    ended: EndedTransactions
    records_seen: int = 0
    records_kept: int = 0
    unreadable: int = 0  # batches

    def left_of(self, batch: Batch) -> Batch | None:
        """
        The very batch where all of it stays, `None` where nothing does.
        """
        header = batch.header
        if header.is_control:
            return self._left_of_marker(batch, self.ended.may_go(batch))
        is_aborted = self.ended.is_aborted(header)
        if header.last_offset < self.log_start:
            return self._emptied(batch)
        if header.base_offset >= self.latest.end or (is_aborted and self._is_last(header)):
            return batch
        if is_aborted:
            self.records_seen += header.records_count
            return self._emptied(batch)
        try:
            payload = payload_of(batch)
            found = list(entries(payload, header.records_count))
            kept = self._kept(header, found)
            left = self._with(batch, payload.data, found, kept)
        except Malformed:
            self.unreadable += 1
            return batch
        self.records_seen += len(found)
        self.records_kept += len(kept)
        return left

    def _left_of_marker(self, batch: Batch, may_go: bool) -> Batch | None:
        header = batch.header
        if not may_go or self._is_last(header):
            return batch
        if not header.records_count:
            return self._emptied(batch)
        if header.has_delete_horizon:
            return self._emptied(batch) if self.times.now_ms >= header.base_timestamp else batch
        try:
            payload = payload_of(batch)
            found = list(entries(payload, header.records_count))
            return thinned(header, payload.data, found, self.times.horizon_ms)
        except Malformed:
            self.unreadable += 1
            return batch

    def _with(self, batch: Batch, data: bytes, found: list[Entry], kept: list[Entry]) -> Batch | None:
        if not kept:
            return self._emptied(batch)
        horizon_ms = self._horizon(batch.header, kept)
        if len(kept) == len(found) and horizon_ms is None:
            return batch
        return thinned(batch.header, data, kept, horizon_ms)

    def _kept(self, header: BatchHeader, found: list[Entry]) -> list[Entry]:
        base, end, is_latest = header.base_offset, self.latest.end, self.latest.is_latest
        is_shown = not header.has_delete_horizon or self.times.now_ms < header.base_timestamp
        shows_deletions = is_shown or header.last_offset >= self.times.deletions_stay_from
        return [
            entry
            for entry in found
            if base + entry[2] >= end - 1
            or (entry[3] is not None and (entry[4] or shows_deletions) and is_latest(entry[3], base + entry[2]))
        ]

    def _horizon(self, header: BatchHeader, kept: list[Entry]) -> int | None:
        """
        When the deletions in it may go, if that is decided now.
        """
        if header.has_delete_horizon or all(has_value for *_, has_value in kept):
            return None
        return self.times.horizon_ms

    def _is_last(self, header: BatchHeader) -> bool:
        """
        Whether the very last record is in it.
        """
        return header.last_offset >= self.latest.end - 1

    def _emptied(self, batch: Batch) -> Batch | None:
        header = batch.header
        last = self.last_batches.get(header.producer_id)
        if last is None or not last.is_that_of(header):
            return None
        return emptied(header) if header.records_count else batch
