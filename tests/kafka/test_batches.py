"""
Record batches in both directions: Kafka's classes read ours, and we read theirs.
"""

import random
from collections.abc import Sequence
from itertools import chain
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kgateway.messages.control_records import ControlRecordTypeSchema, EndTxnMarker
from kgateway.records.batch import CRC_START, HEADER_SIZE, batches, crc_holds, placed, read_batch
from kgateway.records.compression import Codec
from kgateway.records.record import Header, Record, records
from kgateway.wire.codec import decode, encode
from kgateway.wire.schema import Message
from tests.kafka.batches import MAX_I32, MAX_I64, OPTIONS, PRODUCERS, Kafka, at, heard
from tests.records.values import SAMPLE, built, record_lists

pytestmark = pytest.mark.kafka

LEVELS = [
    *((codec, None) for codec in Codec),
    *((Codec.GZIP, level) for level in (1, 9)),
    *((Codec.LZ4, level) for level in (1, 17)),
    *((Codec.ZSTD, level) for level in (-(1 << 17), 1, 19)),
]
SLOW_LEVEL = (Codec.ZSTD, 22)  # takes Java a second, whatever the size


def many() -> list[Record]:
    """
    Records that fill several blocks of every codec, some of which do not shrink.
    """
    rng = random.Random(61)
    values = [None, b"", b"abc" * 500, rng.randbytes(3_000), rng.randbytes(3)]
    return [
        Record(n, (1 << 40) + rng.randint(-9_999, 9_999), rng.choice(values), rng.choice(values), (Header("n", b"n"),))
        for n in range(200)
    ]


def assert_both_read(kafka: Kafka, data: bytes, rows: Sequence[Record]) -> None:
    """
    Kafka and we find a single valid batch in these bytes, with these records and the same header.
    """
    batch = read_batch(data)
    assert crc_holds(batch)
    assert list(records(batch)) == rows
    [shown] = kafka.read(data)
    assert shown.records == rows
    assert shown.header == {name: getattr(batch.header, name) for name in shown.header}


@pytest.mark.parametrize(("codec", "level"), LEVELS)
def test_kafka_reads_what_we_build(codec: Codec, level: int | None, kafka: Kafka) -> None:
    """
    Kafka finds our batches valid, with the original records in them.
    """

    @given(rows=record_lists(), options=OPTIONS, is_control=st.booleans())
    def check(rows: list[Record], options: dict[str, Any], is_control: bool) -> None:
        data = built(rows, codec=codec, level=level, is_control=is_control, **options)
        assert_both_read(kafka, data, at(rows, **options))

    check()


@pytest.mark.parametrize(("codec", "level"), LEVELS)
def test_we_read_what_kafka_builds(codec: Codec, level: int | None, kafka: Kafka) -> None:
    """
    The CRC of Kafka's batch is valid, and its records are the original ones.
    """

    @given(rows=record_lists(min_size=1), options=OPTIONS)
    def check(rows: list[Record], options: dict[str, Any]) -> None:
        data = kafka.build(rows, codec=codec, level=level, **options)
        assert_both_read(kafka, data, at(rows, **options))

    check()


@pytest.mark.parametrize("codec", Codec)
def test_both_builders_write_the_same(codec: Codec, kafka: Kafka) -> None:
    """
    Without compression both builders write the same bytes, and with it the same header except for size and CRC.
    """
    parts = [slice(None)] if codec is Codec.NONE else [slice(8), slice(12, 17), slice(CRC_START, HEADER_SIZE)]

    @given(rows=record_lists(min_size=1), options=OPTIONS)
    def check(rows: list[Record], options: dict[str, Any]) -> None:
        ours, theirs = built(rows, codec=codec, **options), kafka.build(rows, codec=codec, **options)
        assert [ours[part] for part in parts] == [theirs[part] for part in parts]

    check()


@pytest.mark.parametrize(("codec", "level"), [*LEVELS, SLOW_LEVEL])
def test_many_records_are_exchanged(codec: Codec, level: int | None, kafka: Kafka) -> None:
    """
    Each side reads the other's batches of several compressed blocks.
    """
    rows = many()
    for build in (built, kafka.build):
        assert_both_read(kafka, build(rows, codec=codec, level=level), rows)


def test_extreme_numbers_are_exchanged(kafka: Kafka) -> None:
    """
    Kafka reads offsets and timestamps up to the largest, and negative timestamps, which its own builder refuses.
    """
    rows = [Record(n, time, None, None) for n, time in enumerate([0, MAX_I64, -1, -MAX_I64 - 1])]
    assert_both_read(kafka, built(rows, base_offset=MAX_I64 - 3), at(rows, MAX_I64 - 3))


@given(key=st.binary(max_size=20))
@example(key=b"\xed\xa0\x80 \xed\xbf")
def test_any_header_key_is_read(kafka: Kafka, key: bytes) -> None:
    """
    Kafka reads a header key of any bytes.
    """
    rows = [Record(0, 0, None, None, (Header(key.decode(errors="surrogateescape"), b""),))]
    [shown] = kafka.read(built(rows))
    assert shown.records == heard(rows)


@given(codec=st.sampled_from(Codec), options=OPTIONS, is_control=st.booleans())
def test_an_empty_batch_equals_kafkas(kafka: Kafka, codec: Codec, options: dict[str, Any], is_control: bool) -> None:
    """
    A batch without records is, byte for byte, the one that Kafka's compaction leaves.
    """
    ours = built([], codec=codec, is_control=is_control, **options)
    assert ours == kafka.build_empty(is_control=is_control, **options)


@pytest.mark.parametrize("codec", Codec)
def test_compacted_batch_is_read(codec: Codec, kafka: Kafka) -> None:
    """
    Records that compaction left, with gaps between offsets and a delete horizon, are read at their offsets.
    """
    rows = [Record(offset, 1_000 * offset, b"k%d" % offset, None) for offset in (4, 9, 11)]
    data = kafka.build(rows, codec=codec, base_offset=100, delete_horizon_ms=7_777)
    assert_both_read(kafka, data, at(rows, 100))
    header = read_batch(data).header
    assert (header.has_delete_horizon, header.base_timestamp, header.last_offset) == (True, 7_777, 111)


def test_consecutive_batches_are_read(kafka: Kafka) -> None:
    """
    Kafka finds the batches that we placed in a buffer, whichever side built them, with their new offsets and epochs.
    """
    buffer, expected = b"", []
    both = [[built(SAMPLE, codec=codec), kafka.build(SAMPLE, codec=codec)] for codec in Codec]
    for epoch, data in enumerate(chain.from_iterable(both)):
        buffer += b"".join(placed(read_batch(data), 100 * epoch, epoch))
        expected.append((epoch, at(SAMPLE, 100 * epoch)))
    assert [(shown.header["partition_leader_epoch"], shown.records) for shown in kafka.read(buffer)] == expected
    assert [(batch.header.partition_leader_epoch, list(records(batch))) for batch in batches(buffer)] == expected


@pytest.mark.parametrize(("name", "number"), [("ABORT", 0), ("COMMIT", 1)])
def test_a_transaction_marker_equals_kafkas(name: str, number: int, kafka: Kafka) -> None:
    """
    We read Kafka's marker with our tables, and our builder writes the same bytes.
    """

    @given(producer=PRODUCERS, coordinator_epoch=st.integers(0, MAX_I32))
    def check(producer: dict[str, Any], coordinator_epoch: int) -> None:
        options = producer | {"base_sequence": -1, "is_transactional": True, "base_offset": 500, "leader_epoch": 4}
        data = kafka.build_marker(type=name, timestamp=1_000, coordinator_epoch=coordinator_epoch, **options)
        key, value = ControlRecordTypeSchema(type=number), EndTxnMarker(coordinator_epoch=coordinator_epoch)
        [record] = records(read_batch(data))
        assert unversioned(ControlRecordTypeSchema, record.key) == key
        assert unversioned(EndTxnMarker, record.value) == value
        row = Record(0, 1_000, b"\0\0" + encode(key, 0), b"\0\0" + encode(value, 0))
        assert_both_read(kafka, data, at([row], 500))
        assert data == built([row], is_control=True, **options)

    check()


def unversioned(message: type[Message], data: bytes | None) -> Message:
    """
    The key or value of a control record, without the version before it.
    """
    assert data
    return decode(message, int.from_bytes(data[:2], "big"), data[2:])
