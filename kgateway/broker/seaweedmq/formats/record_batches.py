"""
Batches of single records, and the single records of batches, for the formats that write each record as a message.
"""

from typing import NamedTuple

from kgateway.broker.partition.producer_state import SEQUENCE_MAX
from kgateway.records.batch import Batch
from kgateway.records.builder import BatchBuilder, Headers
from kgateway.records.record import Record, records
from kgateway.wire.errors import ErrorCode, KafkaError, Malformed
from kgateway.wire.types import Buffer

_BATCH_BYTES = 1 << 16
_APART_MAX = 1 << 62  # timestamps in one batch


class ProducerSequence(NamedTuple):
    """
    The batch of an idempotent producer that a record came in, and which record of it this is.
    """

    producer_id: int
    producer_epoch: int
    base_sequence: int
    number: int
    records: int  # in the batch


class BatchRuns:
    """
    Takes records one by one, with their offsets; consecutive ones become one batch, as far as a batch can hold them.
    """

    def __init__(self) -> None:
        self.batches: list[Buffer] = []
        self._builder = BatchBuilder()
        self._next = -1  # the offset of the next record
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
        sequence: ProducerSequence | None = None,
    ) -> None:
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

    def _begin(self, offset: int, timestamp: int, by_append: bool, sequence: ProducerSequence | None) -> None:
        self.finish()
        self._builder = builder = BatchBuilder(base_offset=offset, log_append_time_ms=timestamp if by_append else None)
        self._first_timestamp = timestamp
        if sequence:
            builder.producer_id, builder.producer_epoch = sequence.producer_id, sequence.producer_epoch
            builder.base_sequence = (sequence.base_sequence + sequence.number) % (SEQUENCE_MAX + 1)

    def finish(self) -> list[Buffer]:
        if self._builder.count:
            self.batches.append(self._builder.build())
        return self.batches


_LONG = range(-(1 << 63), 1 << 63)


def single_records(batch: Batch) -> list[Record]:
    """
    The records, if the formats have a place for them and their offsets are consecutive.
    """
    header = batch.header
    if header.is_control or header.is_transactional:
        raise refused("this topic cannot store batches of transactions, because its messages are single records")
    try:
        found = list(records(batch))
    except Malformed as failure:
        raise refused(f"the records cannot be read: {failure}") from None
    for number, record in enumerate(found):
        if record.offset != header.base_offset + number:
            raise refused(f"record {number} has the offset delta {record.offset - header.base_offset}")
        if record.timestamp not in _LONG:
            raise refused(f"record {number} has the timestamp {record.timestamp}, which needs more than 64 bits")
    return found


def refused(reason: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_RECORD, reason)
