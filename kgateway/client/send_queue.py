"""
The queue of records for a partition, and their batches.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

from kgateway.records.builder import BatchBuilder
from kgateway.records.compression import Codec

RECORD_BYTES = 24  # of a record beside key and value, about


class OutgoingRecord(NamedTuple):
    """
    A record, and the place in the input that errors name.
    """

    key: bytes | None
    value: bytes | None
    timestamp: int
    headers: tuple[tuple[str, bytes | None], ...]
    partition: int | None
    place: str | tuple[str, int]  # a text, or a name and a line number

    @property
    def size(self) -> int:
        """
        The approximate size in bytes.
        """
        size = RECORD_BYTES + len(self.key or b"") + len(self.value or b"")
        if self.headers:
            size += sum(RECORD_BYTES + len(name) + len(note or b"") for name, note in self.headers)
        return size


class ProducerIdentity(NamedTuple):
    """
    The producer's identity; -1 without idempotence. With a transactional id, batches belong to its transaction.
    """

    id: int = -1
    epoch: int = -1
    transactional_id: str | None = None


@dataclass(slots=True)
class PendingBatch:
    records: list[OutgoingRecord] = field(default_factory=list)
    size: int = 0

    def halves(self) -> tuple["PendingBatch", "PendingBatch"]:
        middle = len(self.records) // 2
        return _pack(self.records[:middle]), _pack(self.records[middle:])

    def batch(self, codec: Codec, producing: ProducerIdentity, sequence: int) -> bytes:
        """
        The encoded batch. Each call returns the same bytes, so that a server recognizes a batch it already has.
        """
        builder = BatchBuilder(
            codec=codec,
            producer_id=producing.id,
            producer_epoch=producing.epoch,
            base_sequence=sequence,
            is_transactional=producing.transactional_id is not None,
        )
        for record in self.records:
            builder.append(record.key, record.value, timestamp=record.timestamp, headers=record.headers)
        return builder.build()

    def places(self, index: int | None = None) -> str:
        """
        Where these records were read, or one of them.
        """
        if index is not None and 0 <= index < len(self.records):
            return place_text(self.records[index].place)
        first, last = self.records[0].place, self.records[-1].place
        if first == last:
            return place_text(first)
        return f"from {place_text(first)} to {place_text(last)}"


def place_text(place: str | tuple[str, int]) -> str:
    return place if isinstance(place, str) else f"{place[0]}, line {place[1]}"


def _pack(records: list[OutgoingRecord]) -> PendingBatch:
    return PendingBatch(records, sum(record.size for record in records))
