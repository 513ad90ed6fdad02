"""
The builder compared byte for byte with kafka-python and Java, and what they read of it.
"""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder
from kio.records.readers import read_batch as read_with_kio

from kgateway.records.batch import HEADER_SIZE, TimestampType, crc_holds, read_batch
from kgateway.records.builder import BatchBuilder, size_bound
from kgateway.records.compression import Codec
from kgateway.records.record import Header, Record, records
from kgateway.wire.errors import Unencodable
from tests.records.values import JAVA_BATCHES, JAVA_RECORDS, SAMPLE, batch_of, built, filled, record_lists

JAVA_PRODUCER = {"leader_epoch": 5, "producer_id": 7, "producer_epoch": 3, "base_sequence": 11}


def by_kafka_python(
    rows: list[Record], codec: Codec = Codec.NONE, producer: tuple[int, int, int] = (-1, -1, -1)
) -> bytes:
    builder = DefaultRecordBatchBuilder(2, codec, producer[0] >= 0, *producer, batch_size=1 << 24)
    for row in rows:
        builder.append(row.offset, row.timestamp, row.key, row.value, [tuple(header) for header in row.headers])
    return bytes(builder.build())


def read_by_kafka_python(data: bytes) -> list[Record]:
    batch = DefaultRecordBatch(data)
    assert batch.validate_crc()
    return [
        Record(r.offset, r.timestamp, r.key, r.value, tuple(Header(*header) for header in r.headers)) for r in batch
    ]


@given(rows=record_lists(min_size=1))
def test_bytes_are_those_of_kafka_python(rows: list[Record]) -> None:
    """
    This holds without compression.
    """
    assert built(rows, leader_epoch=0) == by_kafka_python(rows)
    producer = {"producer_id": 9, "producer_epoch": 2, "base_sequence": 40, "is_transactional": True}
    assert built(rows, leader_epoch=0, **producer) == by_kafka_python(rows, producer=(9, 2, 40))


def test_the_sample_has_the_same_bytes() -> None:
    """
    It has null and empty keys and values, headers, and a negative timestamp delta.
    """
    assert built(SAMPLE, leader_epoch=0) == by_kafka_python(SAMPLE)
    assert {record.key for record in SAMPLE} > {None, b""}
    assert None in {record.value for record in SAMPLE}
    assert SAMPLE[1].timestamp < SAMPLE[0].timestamp


def test_bytes_are_those_of_java() -> None:
    """
    This holds without compression.
    """
    assert built(JAVA_RECORDS, **JAVA_PRODUCER) == JAVA_BATCHES[Codec.NONE]


@pytest.mark.parametrize("codec", [Codec.SNAPPY, Codec.LZ4])
def test_compressed_bytes_have_javas_framing(codec: Codec) -> None:
    """
    Snappy and lz4 begin as in Java, up to the choices of the compressors.
    """
    ours, framing = built(JAVA_RECORDS, codec=codec, **JAVA_PRODUCER), {Codec.SNAPPY: 16, Codec.LZ4: 7}[codec]
    assert ours[21 : HEADER_SIZE + framing] == JAVA_BATCHES[codec][21 : HEADER_SIZE + framing]


@pytest.mark.parametrize("codec", Codec)
@given(rows=record_lists(min_size=1))
def test_kafka_python_reads_our_batches(codec: Codec, rows: list[Record]) -> None:
    """
    Its reader returns the original records with every codec.
    """
    assert read_by_kafka_python(built(rows, codec=codec)) == rows


@pytest.mark.parametrize("codec", Codec)
@given(rows=record_lists(min_size=1))
def test_kafka_python_batches_are_read(codec: Codec, rows: list[Record]) -> None:
    """
    They are read with every codec, and their CRC is valid.
    """
    batch = read_batch(by_kafka_python(rows, codec))
    assert crc_holds(batch)
    assert list(records(batch)) == rows


def test_kafka_python_compresses_the_sample() -> None:
    """
    kafka-python drops compression that does not pay, so the sample must be large enough.
    """
    for codec in Codec:
        assert read_batch(by_kafka_python([*SAMPLE, *SAMPLE], codec)).header.codec is codec


@given(rows=record_lists(min_size=1))
def test_kio_reads_our_batches(rows: list[Record]) -> None:
    """
    A second independent reader agrees.
    """
    theirs, _ = read_with_kio(built(rows, base_offset=70, **JAVA_PRODUCER), 0)
    assert [(r.offset - 70, r.key, r.value) for r in theirs.records] == [row[:1] + row[2:4] for row in rows]
    assert [[(h.key, h.value) for h in r.headers] for r in theirs.records] == [
        [(header.key.encode(), header.value) for header in row.headers] for row in rows
    ]
    assert (theirs.producer_id, theirs.producer_epoch, theirs.base_sequence) == (7, 3, 11)


def test_a_batch_without_records_is_a_header() -> None:
    """
    Compaction leaves such batches, and kafka-python writes them, except for the timestamps.
    """
    ours, theirs = built([], leader_epoch=0, codec=Codec.GZIP), by_kafka_python([])
    assert ours[:17] + ours[21:27] + ours[43:] == theirs[:17] + theirs[21:27] + theirs[43:]
    assert (read_batch(ours).header.base_timestamp, read_batch(ours).header.max_timestamp) == (-1, -1)
    assert read_by_kafka_python(ours) == []


@pytest.mark.parametrize("codec", Codec)
def test_arguments_are_in_the_header(codec: Codec) -> None:
    """
    The CRC is valid.
    """
    batch = batch_of(SAMPLE, codec=codec, base_offset=100, is_transactional=True, is_control=True, **JAVA_PRODUCER)
    header = batch.header
    assert (header.codec, header.timestamp_type) == (codec, TimestampType.CREATE_TIME)
    assert header.is_transactional
    assert header.is_control
    assert (header.base_offset, header.last_offset, header.records_count) == (100, 103, 4)
    assert (header.base_timestamp, header.max_timestamp) == (1_000, 5_000)
    assert header.partition_leader_epoch == 5
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (7, 3, 11)
    assert header.size == len(batch.data)
    assert crc_holds(batch)
    assert [record.offset for record in records(batch)] == [100, 101, 102, 103]


def test_a_plain_batch_has_no_flags() -> None:
    """
    Without arguments it has no producer and no leader epoch.
    """
    header = batch_of(SAMPLE).header
    assert (header.attributes, header.producer_id, header.producer_epoch, header.base_sequence) == (0, -1, -1, -1)
    assert header.partition_leader_epoch == -1


def test_log_append_time_keeps_the_deltas() -> None:
    """
    LogAppendTime is in the flag and the max timestamp; the records keep their own timestamps.
    """
    header = batch_of(SAMPLE, log_append_time_ms=9_999).header
    assert (header.timestamp_type, header.base_timestamp) == (TimestampType.LOG_APPEND_TIME, 1_000)
    assert header.max_timestamp == 9_999
    assert built(SAMPLE, log_append_time_ms=9_999)[HEADER_SIZE:] == built(SAMPLE)[HEADER_SIZE:]


@pytest.mark.parametrize("timestamps", [[-1], [-1, -1], [-5, -3], [7, 3], [0]])
def test_max_timestamp_is_the_largest(timestamps: list[int]) -> None:
    """
    The records decide it, and the base timestamp is that of the first.
    """
    header = batch_of([Record(n, t, None, None) for n, t in enumerate(timestamps)]).header
    assert (header.base_timestamp, header.max_timestamp) == (timestamps[0], max(timestamps))


@given(rows=record_lists())
def test_the_running_size_is_that_of_the_batch(rows: list[Record]) -> None:
    """
    It is exact without compression, and no record exceeds its bound.
    """
    builder = BatchBuilder()
    for row in rows:
        before, bound = builder.size, size_bound(row.key, row.value, row.headers)
        filled(builder, [row])
        assert builder.size - before <= bound < builder.size - before + 40 + 10 * len(row.headers)
    assert builder.size == len(builder.build())


def test_size_bound_is_reached_by_the_longest_numbers() -> None:
    """
    The bound has room for the longest timestamp delta, and for the lengths of many headers.
    """
    builder = filled(BatchBuilder(), [Record(0, 0, None, None)])
    before = builder.size
    builder.append(None, None, timestamp=-(1 << 63))
    assert builder.size - before == 1 + 1 + 10 + 1 + 3
    assert size_bound(None, None) == 1 + 10 + 5 * 5
    headers = [("é" * 40, b"v" * 64)] * 30
    before = builder.size
    builder.append(None, None, timestamp=0, headers=headers)
    assert builder.size - before <= size_bound(None, None, headers)


def test_building_twice_gives_the_same_bytes() -> None:
    """
    A batch can be built between records.
    """
    builder = filled(BatchBuilder(codec=Codec.LZ4), SAMPLE[:3])
    assert builder.build() == builder.build() == built(SAMPLE[:3], codec=Codec.LZ4)
    assert filled(builder, SAMPLE[3:]).build() == built(SAMPLE, codec=Codec.LZ4)
    assert builder.count == 4


UNWRITABLE: list[dict[str, Any]] = [
    {"timestamp": (1 << 63) + 1_000},
    {"value": "text"},
    {"key": 5},
    {"headers": [("\ud800", b"")]},  # half a surrogate pair that does not stand for a broken byte
    {"headers": [("k", "text")]},
]


@pytest.mark.parametrize("wrong", UNWRITABLE, ids=str)
def test_a_refused_record_leaves_no_trace(wrong: dict[str, Any]) -> None:
    """
    A record that cannot be encoded does not change the batch.
    """
    builder = filled(BatchBuilder(), SAMPLE[:1])
    with pytest.raises((Unencodable, UnicodeEncodeError)):
        builder.append(**{"key": None, "value": None, "timestamp": 0, "headers": ()} | wrong)
    assert builder.build() == built(SAMPLE[:1])


def test_the_level_is_checked_on_creation() -> None:
    """
    A valid level is used.
    """
    with pytest.raises(ValueError, match="gzip has levels 1 to 9, not 11"):
        BatchBuilder(codec=Codec.GZIP, level=11)
    rows = [Record(n, n, b"%d" % n, b"%d" % n**3) for n in range(500)]
    assert len(built(rows, codec=Codec.GZIP, level=9)) < len(built(rows, codec=Codec.GZIP, level=1))


@given(key=st.binary(max_size=20))
def test_any_header_key_can_be_written(key: bytes) -> None:
    """
    A key of any bytes that this package reads as text is written as the same bytes.
    """
    batch = batch_of([Record(0, 0, None, None, (Header(key.decode(errors="surrogateescape"), None),))])
    assert bytes(batch.data).endswith(bytes([len(key) * 2]) + key + b"\1")


def test_unknown_codecs_are_refused_on_creation() -> None:
    with pytest.raises(ValueError, match="9 is not a valid Codec"):
        BatchBuilder(codec=9)  # type: ignore[arg-type]
