"""
Makes batches of single records, as they stood one by one in a log: records that follow one another go into one batch,
as far as a batch can hold them.
"""

from typing import NamedTuple

from kgateway.broker.producers import SEQUENCE_MAX
from kgateway.records.builder import BatchBuilder, Headers
from kgateway.wire.types import Buffer

_BATCH_BYTES = 1 << 16
_APART_MAX = 1 << 62  # timestamps in one batch


class Sequence(NamedTuple):
    """
    The batch of an idempotent producer that a record came in, and which record of it this is.
    """

    producer_id: int
    producer_epoch: int
    base_sequence: int
    number: int
    records: int  # in the batch


class Runs:
    """
    Takes records one by one, with their offsets.
    """

    def __init__(self) -> None:
        self.batches: list[Buffer] = []
        self._builder = BatchBuilder()
        self._next = -1  # the offset of the record that would go on
        self._kind: tuple[object, ...] = ()  # what all records of a batch have in common
        self._first_timestamp = 0

    def add(
        self,
        offset: int,
        timestamp: int,
        key: bytes | None,
        value: bytes | None,
        headers: Headers = (),
        *,
        by_append: bool,
        sequence: Sequence | None = None,
    ) -> None:
        """
        Put a record behind the others.
        """
        kind = (timestamp if by_append else None, sequence and (*sequence[:3], offset - sequence.number))
        if (
            offset != self._next
            or kind != self._kind
            or self._builder.size >= _BATCH_BYTES
            or not -_APART_MAX < timestamp - self._first_timestamp < _APART_MAX
        ):
            self._begin(offset, timestamp, by_append, sequence)
            self._kind = kind
        self._builder.append(key, value, timestamp=timestamp, headers=headers)
        self._next = offset + 1

    def _begin(self, offset: int, timestamp: int, by_append: bool, sequence: Sequence | None) -> None:
        self.finish()
        self._builder = builder = BatchBuilder(base_offset=offset, log_append_time_ms=timestamp if by_append else None)
        self._first_timestamp = timestamp
        if sequence:
            builder.producer_id, builder.producer_epoch = sequence.producer_id, sequence.producer_epoch
            builder.base_sequence = (sequence.base_sequence + sequence.number) % (SEQUENCE_MAX + 1)

    def finish(self) -> list[Buffer]:
        """
        The batches, when all records were added.
        """
        if self._builder.count:
            self.batches.append(self._builder.build())
        return self.batches
