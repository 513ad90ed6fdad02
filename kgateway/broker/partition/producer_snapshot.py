"""
The producer state of a partition as a file beside its segments, so that a start need not read the whole log:
`OFFSET.snapshot` has the state after all batches before that offset.

The format is Kafka's: a version, a CRC-32C of what follows it, and entries. Kafka writes the last batch of a producer;
here there is an entry for each batch that is remembered, oldest first, so that a producer which repeats one of several
is recognised after a restart too. Kafka's own reader ends up with the last one. A damaged file does no harm: the log
has the same.
"""

from collections.abc import Iterator

from crc32c import crc32c

from kgateway.broker.partition.producer_state import SEQUENCE_MAX, Producer, ProducerTable, WrittenBatch
from kgateway.cluster.partition import NO_OFFSET
from kgateway.records.batch import NO_TIMESTAMP
from kgateway.wire.codec import decode, encode
from kgateway.wire.errors import Malformed
from kgateway.wire.schema import Message, Struct
from kgateway.wire.types import i16, i32, i64, u32

SNAPSHOT = ".snapshot"
_VERSION = 1
_CRC_START, _CRC_END = 2, 6
_NO_SEQUENCE = -1


class ProducerSnapshot(Message, versions="1"):
    class Entry(Struct):
        producer_id: i64
        producer_epoch: i16
        last_sequence: i32
        last_offset: i64
        offset_delta: i32  # from the first record of the batch to the last
        timestamp: i64
        coordinator_epoch: i32
        current_txn_first_offset: i64

    crc: u32
    producer_entries: list[Entry]


def encode_snapshot(table: ProducerTable) -> bytes:
    first_offsets = table.transactions.open
    entries = [
        entry
        for producer_id, producer in table.producers.items()
        for entry in _entries(producer_id, producer, first_offsets.get(producer_id, NO_OFFSET))
    ]
    body = encode(ProducerSnapshot(crc=0, producer_entries=entries), _VERSION)[_CRC_END - _CRC_START :]
    return _VERSION.to_bytes(_CRC_START, "big") + crc32c(body).to_bytes(4, "big") + body


def load_snapshot(data: bytes, table: ProducerTable, now_ms: int) -> bool:
    """
    Load the file into the table, if it is sound.
    """
    version, crc = int.from_bytes(data[:_CRC_START], "big"), int.from_bytes(data[_CRC_START:_CRC_END], "big")
    if version != _VERSION or len(data) < _CRC_END or crc32c(data[_CRC_END:]) != crc:
        return False
    try:
        snapshot = decode_snapshot(data)
    except Malformed:
        return False
    for entry in snapshot.producer_entries:
        _remember(table, entry, now_ms)
    begins = {entry.producer_id: entry.current_txn_first_offset for entry in snapshot.producer_entries}
    table.transactions.reopen((producer_id, offset) for producer_id, offset in begins.items() if offset >= 0)
    return True


def decode_snapshot(data: bytes) -> ProducerSnapshot:
    """
    Decode the file, sound or not; raises Malformed if that is impossible.
    """
    return decode(ProducerSnapshot, _VERSION, data[_CRC_START:])


def _entries(producer_id: int, producer: Producer, transaction_offset: int) -> Iterator[ProducerSnapshot.Entry]:
    unnumbered = NO_OFFSET if producer.unnumbered_offset is None else producer.unnumbered_offset
    for batch in producer.window or [WrittenBatch(_NO_SEQUENCE, _NO_SEQUENCE, unnumbered, NO_TIMESTAMP)]:
        delta = (batch.last_sequence - batch.base_sequence) % (SEQUENCE_MAX + 1)
        yield ProducerSnapshot.Entry(
            producer_id=producer_id,
            producer_epoch=producer.epoch,
            last_sequence=batch.last_sequence,
            last_offset=batch.base_offset + delta if batch.base_offset >= 0 else NO_OFFSET,
            offset_delta=delta,
            timestamp=batch.timestamp_ms,
            coordinator_epoch=producer.coordinator_epoch,
            current_txn_first_offset=transaction_offset,
        )


def _remember(table: ProducerTable, entry: ProducerSnapshot.Entry, now_ms: int) -> None:
    producer = table.producers.get(entry.producer_id)
    if producer is None or producer.epoch != entry.producer_epoch:
        producer = table.producers[entry.producer_id] = Producer(entry.producer_epoch, now_ms)
    producer.coordinator_epoch = entry.coordinator_epoch
    if entry.last_sequence >= 0:
        base_sequence = (entry.last_sequence - entry.offset_delta) % (SEQUENCE_MAX + 1)
        base_offset = entry.last_offset - entry.offset_delta
        producer.window.append(WrittenBatch(base_sequence, entry.last_sequence, base_offset, entry.timestamp))
    elif entry.last_offset >= 0:
        producer.unnumbered_offset = entry.last_offset
