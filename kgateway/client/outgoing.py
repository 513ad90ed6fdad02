"""
Records on their way to one partition.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

from kgateway.records.builder import BatchBuilder
from kgateway.records.compression import Codec

RECORD_BYTES = 24  # what a record takes beside its key and value, more or less


class Outgoing(NamedTuple):
    """
    A record, and where it stood, for when it is refused.
    """

    key: bytes | None
    value: bytes | None
    timestamp: int
    headers: tuple[tuple[str, bytes | None], ...]
    partition: int | None
    place: str | tuple[str, int]  # a text, or the name of something and the number of a line in it

    @property
    def size(self) -> int:
        """
        Its bytes, more or less.
        """
        size = RECORD_BYTES + len(self.key or b"") + len(self.value or b"")
        if self.headers:
            size += sum(RECORD_BYTES + len(name) + len(note or b"") for name, note in self.headers)
        return size


class Producing(NamedTuple):
    """
    As whom batches are sent; without idempotence as nobody. With a transactional id they are of its transaction.
    """

    id: int = -1
    epoch: int = -1
    transactional_id: str | None = None


@dataclass(slots=True)
class Pack:
    """
    Records that go in one batch.
    """

    records: list[Outgoing] = field(default_factory=list)
    size: int = 0

    def halves(self) -> tuple["Pack", "Pack"]:
        """
        Two that are smaller.
        """
        middle = len(self.records) // 2
        return _pack(self.records[:middle]), _pack(self.records[middle:])

    def batch(self, codec: Codec, producing: Producing, sequence: int) -> bytes:
        """
        As it travels: the same bytes each time it is asked for, so a server knows what it has already.
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
        Where these records stood, or one of them.
        """
        if index is not None and 0 <= index < len(self.records):
            return place_text(self.records[index].place)
        first, last = self.records[0].place, self.records[-1].place
        if first == last:
            return place_text(first)
        return f"from {place_text(first)} to {place_text(last)}"


def place_text(place: str | tuple[str, int]) -> str:
    """
    A place in words.
    """
    return place if isinstance(place, str) else f"{place[0]}, line {place[1]}"


def _pack(records: list[Outgoing]) -> Pack:
    return Pack(records, sum(record.size for record in records))
