"""
Batches from which records were removed, as others read them, and batches in another codec.
"""

from collections.abc import Collection
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.record.memory_records import MemoryRecords

from kgateway.records.batch import (
    LOG_APPEND_TIME_BIT,
    NO_TIMESTAMP,
    TRANSACTIONAL_BIT,
    Batch,
    TimestampType,
    crc_holds,
    read_batch,
)
from kgateway.records.batch_rewrite import changed, emptied, hole, recompressed, thinned
from kgateway.records.compression import Codec
from kgateway.records.record import Header, Record, entries, payload_of, records
from kgateway.records.slices import at_once
from kgateway.wire.errors import ErrorCode, KafkaError, Malformed
from kgateway.wire.varints import write_varint
from tests.records.crc_batches import sealed, three
from tests.records.handmade_batches import holding
from tests.records.values import SAMPLE, batch_of, record_lists

HORIZON_MS = 1_800_000_000_000
PRODUCER: dict[str, Any] = {"producer_id": 7, "producer_epoch": 3, "base_sequence": 11}


def left(batch: Batch, kept: Collection[int], horizon_ms: int | None = None) -> Batch:
    """
    The batch with the records of these numbers only; its bytes are checked and read back.
    """
    payload = payload_of(batch)
    found = [entry for n, entry in enumerate(entries(payload, batch.header.records_count)) if n in kept]
    return whole(thinned(batch.header, payload.data, found, horizon_ms))


def whole(batch: Batch) -> Batch:
    """
    The batch read from its bytes, with their CRC and length.
    """
    again = read_batch(batch.data)
    assert again.header == batch.header
    assert again.data == batch.data
    assert crc_holds(again)
    return again


def read_by_kafka_python(batch: Batch) -> list[Record]:
    found = list[Record]()
    reader = MemoryRecords(bytes(batch.data))
    while reader.has_next():
        read = reader.next_batch()
        assert read.validate_crc()
        found += [Record(one.offset, one.timestamp, one.key, one.value) for one in read]
    return found


@pytest.mark.parametrize("codec", Codec)
@given(rows=record_lists(min_size=1), data=st.data())
def test_kept_records_are_unchanged(codec: Codec, rows: list[Record], data: st.DataObject) -> None:
    """
    They have their offsets, timestamps, keys, values and headers, with a new delete horizon or without.
    """
    batch = sealed(batch_of(rows, codec=codec, **PRODUCER), base_offset=1_000, partition_leader_epoch=5)
    kept = data.draw(st.sets(st.integers(0, len(rows) - 1), min_size=1))
    horizon_ms = data.draw(st.none() | st.integers(0, (1 << 43)))
    expected = [record for n, record in enumerate(records(batch)) if n in kept]
    assert list(records(left(batch, kept, horizon_ms))) == expected


@pytest.mark.parametrize("horizon_ms", [None, HORIZON_MS])
@pytest.mark.parametrize("codec", Codec)
def test_kafka_python_reads_the_kept_records(codec: Codec, horizon_ms: int | None) -> None:
    rows = [record._replace(headers=()) for record in SAMPLE]
    batch = sealed(batch_of(rows, codec=codec), base_offset=40)
    assert read_by_kafka_python(left(batch, {1, 3}, horizon_ms)) == [rows[n]._replace(offset=40 + n) for n in (1, 3)]


@pytest.mark.parametrize("horizon_ms", [None, HORIZON_MS])
def test_header_of_a_thinned_batch(horizon_ms: int | None) -> None:
    """
    Producer, offsets and codec are unchanged; count and largest timestamp are those of the kept records.
    """
    whole = sealed(batch_of(SAMPLE, codec=Codec.LZ4, **PRODUCER), base_offset=40, partition_leader_epoch=5)
    before, after = whole.header, left(whole, {0, 3}, horizon_ms).header
    for name in ("base_offset", "last_offset_delta", "partition_leader_epoch", "codec", *PRODUCER):
        assert getattr(after, name) == getattr(before, name), name
    assert (after.records_count, after.max_timestamp) == (2, 2_000)
    assert after.is_transactional == before.is_transactional == after.is_control


@pytest.mark.parametrize("horizon_ms", [None, HORIZON_MS])
def test_log_append_time_is_kept(horizon_ms: int | None) -> None:
    """
    It is still the time of all records.
    """
    after = left(batch_of(SAMPLE, log_append_time_ms=7_777), {1}, horizon_ms)
    assert (after.header.max_timestamp, after.header.timestamp_type) == (7_777, TimestampType.LOG_APPEND_TIME)
    assert [(record.offset, record.timestamp) for record in records(after)] == [(1, 7_777)]


def test_the_delete_horizon_is_kept() -> None:
    """
    Timestamps are relative to it, and it does not change when more records are removed later.
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
    A record is intact whose length takes another byte because its timestamp does.
    """
    rows = [Record(0, HORIZON_MS, b"k", bytes(size)) for size in (50, 51, 52, 53, 54, 55, 56, 57, 58, 59)]
    rows = [row._replace(offset=n) for n, row in enumerate(rows)]
    assert list(records(left(batch_of(rows), range(10), 5))) == rows


def test_the_original_batch_is_unchanged() -> None:
    """
    Neither its header nor its bytes change.
    """
    batch = batch_of(SAMPLE, codec=Codec.GZIP)
    data = bytes(batch.data)
    left(batch, {1}, HORIZON_MS)
    whole(emptied(batch.header))
    assert read_batch(data).header == batch.header


@pytest.mark.parametrize(
    ("base", "delta", "horizon_ms"),
    [
        (1_000, b"\x80" * 10 + b"\0", None),  # more bytes than a 64-bit number has
        (1_000, b"\xff" * 9 + b"\x7f", None),
        ((1 << 63) - 1, b"\2", None),
        (-(1 << 63), b"\1", None),
        ((1 << 63) - 1, b"\0", -1),
        (-(1 << 63), b"\0", 1),
    ],
)
def test_impossible_timestamps_are_malformed(base: int, delta: bytes, horizon_ms: int | None) -> None:
    """
    The check of keys does not notice them.
    """
    rest = b"\0" + delta + b"\0\2k\1\0"
    record = bytearray()
    write_varint(record, len(rest))
    batch = sealed(holding(bytes(record) + rest, 1), base_timestamp=base, last_offset_delta=0)
    with pytest.raises(Malformed):
        left(batch, {0}, horizon_ms)


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.ZSTD])
@pytest.mark.parametrize("horizon_ms", [None, HORIZON_MS])
def test_an_emptied_batch_keeps_its_header(codec: Codec, horizon_ms: int | None) -> None:
    """
    It has offsets, producer and sequence numbers; it is not compressed, waits for no horizon, and its timestamp is
    the largest it had.
    """
    before = left(sealed(batch_of(SAMPLE, codec=codec, **PRODUCER), base_offset=40), {2, 3}, horizon_ms)
    after = whole(emptied(before.header)).header
    for name in ("base_offset", "last_offset_delta", "partition_leader_epoch", *PRODUCER):
        assert getattr(after, name) == getattr(before.header, name), name
    assert (after.size, after.records_count, after.attributes) == (61, 0, 0)
    assert after.base_timestamp == after.max_timestamp == 5_000
    assert list(records(whole(emptied(before.header)))) == read_by_kafka_python(emptied(before.header)) == []


def test_an_emptied_batch_keeps_its_attributes() -> None:
    """
    A transactional batch or one with LogAppendTime is still one.
    """
    header = batch_of(SAMPLE, log_append_time_ms=7_777, is_transactional=True, codec=Codec.LZ4).header
    after = whole(emptied(header)).header
    assert after.is_transactional
    assert after.timestamp_type is TimestampType.LOG_APPEND_TIME
    assert after.max_timestamp == 7_777


def test_a_hole_has_only_offsets_and_epoch() -> None:
    """
    It has no record, producer or timestamp, and readers skip it.
    """
    batch = whole(hole(1 << 40, (1 << 40) + (1 << 31) - 1, 9))
    header = batch.header
    assert (header.base_offset, header.last_offset) == (1 << 40, (1 << 40) + (1 << 31) - 1)
    assert (header.records_count, header.attributes, header.partition_leader_epoch) == (0, 0, 9)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (-1, -1, -1)
    assert header.base_timestamp == header.max_timestamp == NO_TIMESTAMP
    assert read_by_kafka_python(batch) == []


NOTED_PRODUCER: dict[str, Any] = {
    "producer_id": 7,
    "producer_epoch": 3,
    "base_sequence": 11,
    "is_transactional": True,
}


@pytest.mark.hypothesis
@pytest.mark.parametrize("target", Codec)
@pytest.mark.parametrize("source", Codec)
def test_recompression_changes_nothing_else(source: Codec, target: Codec) -> None:
    """
    Records and header fields are unchanged, and the CRC is valid.
    """

    @given(record_lists(min_size=1))
    def check(rows: list[Record]) -> None:
        batch = batch_of(rows, codec=source, **NOTED_PRODUCER)
        made = at_once(recompressed(batch, target))
        assert list(records(made)) == rows
        assert bytes(made.data) == bytes(batch_of(rows, codec=target, **NOTED_PRODUCER).data)
        assert read_batch(made.data).header.attributes == target | TRANSACTIONAL_BIT

    check()


def test_compression_levels_are_used() -> None:
    batch = batch_of([Record(n, n, b"%d" % (n * n), b"value %d" % n) for n in range(2_000)])
    for codec, low, high in ((Codec.GZIP, 1, 9), (Codec.LZ4, 1, 17), (Codec.ZSTD, 1, 22)):
        weak, strong = (len(at_once(recompressed(batch, codec, level)).data) for level in (low, high))
        assert strong < weak, codec


def test_damaged_compression_is_an_invalid_record() -> None:
    batch = three(Codec.GZIP)
    damaged = replace(batch, data=memoryview(bytes(batch.data[:-1]) + b"\xff"))
    broken = sealed(damaged)
    with pytest.raises(KafkaError) as caught:
        at_once(recompressed(broken, Codec.NONE))
    assert caught.value.code == ErrorCode.INVALID_RECORD


def test_recompression_changes_only_the_codec_attribute() -> None:
    batch = batch_of([Record(0, 5, b"k", b"v")], codec=Codec.GZIP, log_append_time_ms=9)
    made = at_once(recompressed(batch, Codec.NONE))
    assert made.header.attributes == LOG_APPEND_TIME_BIT
    assert made.header.max_timestamp == 9


@pytest.mark.parametrize("codec", Codec)
@given(rows=record_lists(min_size=1), producer=st.sampled_from([{}, PRODUCER, {**PRODUCER, "is_transactional": True}]))
def test_changed_records_keep_their_places(codec: Codec, rows: list[Record], producer: dict[str, Any]) -> None:
    """
    Key, value and headers are new; order, timestamps, codec and producer are not.
    """
    batch = batch_of(rows, codec=codec, **producer)
    new = (b"new key", None, (Header("new", b"1"),))
    after = whole(at_once(changed(batch, lambda record: Record(99, 99, *new))))
    assert list(records(after)) == [Record(row.offset, row.timestamp, *new) for row in rows]
    for name in ("attributes", "last_offset_delta", "records_count", "base_timestamp", *PRODUCER):
        assert getattr(after.header, name) == getattr(batch.header, name), name
    assert whole(at_once(changed(batch, lambda record: record))).data == batch.data


def test_records_that_cannot_be_read_are_not_changed() -> None:
    """
    The error is one that a producer does not retry.
    """
    with pytest.raises(KafkaError) as refused:
        at_once(changed(holding(b"no record", 1), lambda record: record))
    assert refused.value.code is ErrorCode.INVALID_RECORD
