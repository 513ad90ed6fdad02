"""
What is left of batches of which records were taken, and what others read in it.
"""

from collections.abc import Collection
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.record.memory_records import MemoryRecords

from kgateway.records.batch import NO_TIMESTAMP, Batch, TimestampType, crc_holds, read_batch
from kgateway.records.compression import Codec
from kgateway.records.entries import entries
from kgateway.records.payload import payload_of
from kgateway.records.record import Record, records
from kgateway.records.thinned import emptied, hole, thinned
from kgateway.wire.malformed import Malformed
from kgateway.wire.varints import write_varint
from tests.records.handmade import holding
from tests.records.sealed import sealed
from tests.records.values import SAMPLE, batch_of, record_lists

HORIZON_MS = 1_800_000_000_000
PRODUCER: dict[str, Any] = {"producer_id": 7, "producer_epoch": 3, "base_sequence": 11}


def left(batch: Batch, kept: Collection[int], horizon_ms: int | None = None) -> Batch:
    """
    The batch with those of its records that have these numbers; its bytes are checked, and read again.
    """
    payload = payload_of(batch)
    found = [entry for n, entry in enumerate(entries(payload, batch.header.records_count)) if n in kept]
    return whole(thinned(batch.header, payload.data, found, horizon_ms))


def whole(batch: Batch) -> Batch:
    """
    The batch as its bytes have it; the CRC is theirs, and the length.
    """
    again = read_batch(batch.data)
    assert again.header == batch.header
    assert again.data == batch.data
    assert crc_holds(again)
    return again


def theirs(batch: Batch) -> list[Record]:
    """
    The records, as kafka-python reads them.
    """
    found = list[Record]()
    reader = MemoryRecords(bytes(batch.data))
    while reader.has_next():
        read = reader.next_batch()
        assert read.validate_crc()
        found += [Record(one.offset, one.timestamp, one.key, one.value) for one in read]
    return found


@pytest.mark.parametrize("codec", Codec)
@given(rows=record_lists(min_size=1), data=st.data())
def test_records_stay_as_they_were(codec: Codec, rows: list[Record], data: st.DataObject) -> None:
    """
    Those that stay have their offsets, timestamps, keys, values and headers, with a new delete horizon as without.
    """
    batch = sealed(batch_of(rows, codec=codec, **PRODUCER), base_offset=1_000, partition_leader_epoch=5)
    kept = data.draw(st.sets(st.integers(0, len(rows) - 1), min_size=1))
    horizon_ms = data.draw(st.none() | st.integers(0, (1 << 43)))
    expected = [record for n, record in enumerate(records(batch)) if n in kept]
    assert list(records(left(batch, kept, horizon_ms))) == expected


@pytest.mark.parametrize("horizon_ms", [None, HORIZON_MS])
@pytest.mark.parametrize("codec", Codec)
def test_others_read_what_is_left(codec: Codec, horizon_ms: int | None) -> None:
    """
    kafka-python finds the same records in it.
    """
    rows = [record._replace(headers=()) for record in SAMPLE]
    batch = sealed(batch_of(rows, codec=codec), base_offset=40)
    assert theirs(left(batch, {1, 3}, horizon_ms)) == [rows[n]._replace(offset=40 + n) for n in (1, 3)]


@pytest.mark.parametrize("horizon_ms", [None, HORIZON_MS])
def test_header_of_what_is_left(horizon_ms: int | None) -> None:
    """
    It is the same append of the same producer, with the same offsets and codec; count and largest timestamp are those
    of the records that are left.
    """
    whole = sealed(batch_of(SAMPLE, codec=Codec.LZ4, **PRODUCER), base_offset=40, partition_leader_epoch=5)
    before, after = whole.header, left(whole, {0, 3}, horizon_ms).header
    for name in ("base_offset", "last_offset_delta", "partition_leader_epoch", "codec", *PRODUCER):
        assert getattr(after, name) == getattr(before, name), name
    assert (after.records_count, after.max_timestamp) == (2, 2_000)
    assert after.is_transactional == before.is_transactional == after.is_control


@pytest.mark.parametrize("horizon_ms", [None, HORIZON_MS])
def test_log_append_time_stays(horizon_ms: int | None) -> None:
    """
    The time of the append is still that of all records.
    """
    after = left(batch_of(SAMPLE, log_append_time_ms=7_777), {1}, horizon_ms)
    assert (after.header.max_timestamp, after.header.timestamp_type) == (7_777, TimestampType.LOG_APPEND_TIME)
    assert [(record.offset, record.timestamp) for record in records(after)] == [(1, 7_777)]


def test_delete_horizon() -> None:
    """
    It is where the timestamps count from, and stays when more records go later.
    """
    before = left(batch_of(SAMPLE), {1, 2, 3})
    assert not before.header.has_delete_horizon
    assert before.header.base_timestamp == 1_000
    first = left(before, {0, 1}, HORIZON_MS)
    assert (first.header.has_delete_horizon, first.header.base_timestamp) == (True, HORIZON_MS)
    second = left(first, {1})
    assert (second.header.has_delete_horizon, second.header.base_timestamp) == (True, HORIZON_MS)
    assert list(records(second)) == [SAMPLE[2]]
    assert second.header.max_timestamp == SAMPLE[2].timestamp


def test_long_records_have_long_lengths() -> None:
    """
    A record whose length takes another byte because its timestamp does is whole.
    """
    rows = [Record(0, HORIZON_MS, b"k", bytes(size)) for size in (50, 51, 52, 53, 54, 55, 56, 57, 58, 59)]
    rows = [row._replace(offset=n) for n, row in enumerate(rows)]
    assert list(records(left(batch_of(rows), range(10), 5))) == rows


def test_given_batch_stays() -> None:
    """
    Neither the header nor the bytes of the batch that was thinned change.
    """
    batch = batch_of(SAMPLE, codec=Codec.GZIP)
    data = bytes(batch.data)
    left(batch, {1}, HORIZON_MS)
    whole(emptied(batch.header))
    assert read_batch(data).header == batch.header


@pytest.mark.parametrize(
    ("base", "delta", "horizon_ms"),
    [
        (1_000, b"\x80" * 10 + b"\0", None),  # more bytes than a number of 64 bits has
        (1_000, b"\xff" * 9 + b"\x7f", None),
        ((1 << 63) - 1, b"\2", None),
        (-(1 << 63), b"\1", None),
        ((1 << 63) - 1, b"\0", -1),
        (-(1 << 63), b"\0", 1),
    ],
)
def test_timestamps_that_cannot_be(base: int, delta: bytes, horizon_ms: int | None) -> None:
    """
    A timestamp that is none, of which the check of keys knows nothing, is malformed.
    """
    rest = b"\0" + delta + b"\0\2k\1\0"
    record = bytearray()
    write_varint(record, len(rest))
    batch = sealed(holding(bytes(record) + rest, 1), base_timestamp=base, last_offset_delta=0)
    with pytest.raises(Malformed):
        left(batch, {0}, horizon_ms)


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.ZSTD])
@pytest.mark.parametrize("horizon_ms", [None, HORIZON_MS])
def test_emptied(codec: Codec, horizon_ms: int | None) -> None:
    """
    Without any record it still has offsets, producer and sequence numbers; it is not compressed, nor waits for a
    horizon, and its one timestamp is the largest that was in it.
    """
    before = left(sealed(batch_of(SAMPLE, codec=codec, **PRODUCER), base_offset=40), {2, 3}, horizon_ms)
    after = whole(emptied(before.header)).header
    for name in ("base_offset", "last_offset_delta", "partition_leader_epoch", *PRODUCER):
        assert getattr(after, name) == getattr(before.header, name), name
    assert (after.size, after.records_count, after.attributes) == (61, 0, 0)
    assert after.base_timestamp == after.max_timestamp == 5_000
    assert list(records(whole(emptied(before.header)))) == theirs(emptied(before.header)) == []


def test_emptied_keeps_what_else_it_was() -> None:
    """
    A batch of a transaction, or with LogAppendTime, is still one.
    """
    header = batch_of(SAMPLE, log_append_time_ms=7_777, is_transactional=True, codec=Codec.LZ4).header
    after = whole(emptied(header)).header
    assert after.is_transactional
    assert after.timestamp_type is TimestampType.LOG_APPEND_TIME
    assert after.max_timestamp == 7_777


def test_hole() -> None:
    """
    It has offsets and an epoch, no record, no producer and no timestamp, and others pass over it.
    """
    batch = whole(hole(1 << 40, (1 << 40) + (1 << 31) - 1, 9))
    header = batch.header
    assert (header.base_offset, header.last_offset) == (1 << 40, (1 << 40) + (1 << 31) - 1)
    assert (header.records_count, header.attributes, header.partition_leader_epoch) == (0, 0, 9)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (-1, -1, -1)
    assert header.base_timestamp == header.max_timestamp == NO_TIMESTAMP
    assert theirs(batch) == []
