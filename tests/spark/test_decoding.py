"""
Columns, compared with the records that `kgateway.records` reads one by one.
"""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgateway.records.batch import batches
from kgateway.records.builder import BatchBuilder
from kgateway.records.compression import Codec
from kgateway.records.record import Header, Record, records
from kgateway.records.record_columns import RecordBodies
from kgateway.spark.decoders.batch_bodies import record_bodies
from kgateway.spark.decoders.columns import HEADERS, kafka_columns
from kgateway.spark.decoders.records import columns_of
from kgateway.wire.errors import Malformed
from tests.records.handmade_batches import body, holding
from tests.records.values import JAVA_BATCHES, SAMPLE, built, filled, record_lists

NAMES = [name for name in kafka_columns(with_headers=True) if name not in ("topic", "partition")]
ANY = 1 << 62
_US = 1_000


def rows(data: bytes, first: int = 0, end: int = ANY, size: int = 1 << 20) -> list[dict[str, Any]]:
    found = []
    for group in record_bodies(batches(data, cut_tail=True), lambda header: not header.is_control, size):
        columns = columns_of(group, NAMES, first, end)
        table = pa.table(columns)
        table = table.set_column(NAMES.index("timestamp"), "timestamp", table["timestamp"].cast(pa.int64()))
        found += table.to_pylist()
    return found


def expected(data: bytes) -> list[dict[str, Any]]:
    """
    The rows that the reader of records finds.
    """
    return [
        {
            "key": record.key,
            "value": record.value,
            "offset": record.offset,
            "timestamp": record.timestamp * _US,
            "timestampType": int(batch.header.timestamp_type),
            HEADERS: [header._asdict() for header in record.headers] or None,
        }
        for batch in batches(data)
        for record in records(batch)
    ]


_BATCH = st.tuples(record_lists(), st.sampled_from(Codec), st.none() | st.integers(0, 1 << 42))


@given(st.lists(_BATCH, max_size=5), st.sampled_from([1, 100, 1 << 20]))
def test_columns_equal_the_records(drawn: Sequence[tuple[list[Record], Codec, int | None]], size: int) -> None:
    """
    Batches of all codecs, with nulls, headers, deltas up and down, LogAppendTime, or nothing in them, however many are
    decoded together.
    """
    parts, offset = [], 0
    for records_, codec, appended in drawn:
        builder = BatchBuilder(codec=codec, base_offset=offset, log_append_time_ms=appended)
        parts.append(filled(builder, records_).build())
        offset += max(len(records_), 1)
    data = b"".join(parts)
    assert rows(data, size=size) == expected(data)


@pytest.mark.parametrize("codec", Codec)
def test_batches_of_kafkas_java_producer(codec: Codec) -> None:
    assert rows(JAVA_BATCHES[codec]) == expected(JAVA_BATCHES[codec])


def test_records_of_all_sizes() -> None:
    """
    Lengths take one, two, three or four bytes.
    """
    sizes = [0, 1, 50, 63, 64, 100, 8_000, 8_191, 8_192, 100_000, 1_100_000, 3]
    data = built([Record(at, 5, None, bytes(size)) for at, size in enumerate(sizes)])
    assert [len(row["value"]) for row in rows(data)] == sizes


def test_extreme_offsets_and_times() -> None:
    """
    Deltas count from any base, and a timestamp out of Spark's range is null.
    """
    largest = (1 << 63) // _US - 1
    stamps = [0, -largest, largest, 1 << 62, -(1 << 62)]
    data = built([Record(at, stamp, None, None) for at, stamp in enumerate(stamps)], base_offset=(1 << 60) - 2)
    found = rows(data)
    assert [row["offset"] for row in found] == [(1 << 60) - 2 + at for at in range(5)]
    assert [row["timestamp"] for row in found] == [0, -largest * _US, largest * _US, None, None]


def test_any_size_below_0_is_null() -> None:
    """
    Kafka reads any size below 0 as null, not only -1.
    """
    [group] = _unchecked(holding(b"", 1).header, b"\x0c\0\0\0\3\5\0")
    assert {name: columns_of(group, [name], 0, ANY)[name].to_pylist() for name in ("key", "value")} == {
        "key": [None],
        "value": [None],
    }


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.LZ4])
def test_decoded_groups_are_bounded(codec: Codec) -> None:
    """
    Groups of batches have about the requested size, however many batches there are.
    """
    found = list(batches(b"".join(built(SAMPLE, codec=codec, base_offset=4 * at) for at in range(5))))
    one = record_bodies(found, lambda header: True, 10_000)
    assert [len(group.headers) for group in one] == [5]
    assert [len(group.headers) for group in record_bodies(found, lambda header: True, 700)] == [2, 2, 1]
    assert [len(group.headers) for group in record_bodies(found, lambda header: True, 1)] == [1] * 5


def test_a_range_cuts_batches() -> None:
    """
    Records outside the range are dropped from batches that overlap its ends.
    """
    data = built(SAMPLE, base_offset=10) + built(SAMPLE, base_offset=14)
    assert [row["offset"] for row in rows(data, first=12, end=16)] == [12, 13, 14, 15]


def test_a_batch_that_is_cut_off_is_left_out() -> None:
    """
    The last batch of an answer may be incomplete.
    """
    data = built(SAMPLE) + built(SAMPLE, base_offset=4)
    assert len(rows(data[:-1])) == len(SAMPLE)


def test_header_keys_that_are_no_utf_8() -> None:
    """
    A header key that is not UTF-8 is read as Java reads it.
    """
    data = built([Record(0, 1, None, None, (Header("a\udcff", b"1"),))])
    assert rows(data)[0][HEADERS] == [{"key": "a\N{REPLACEMENT CHARACTER}", "value": b"1"}]


def test_a_flipped_bit_is_found() -> None:
    """
    A batch with a wrong CRC is refused.
    """
    data = bytearray(built(SAMPLE, base_offset=70))
    data[-1] ^= 1
    with pytest.raises(Malformed, match=r"CRC.*first offset is 70"):
        rows(bytes(data))


DAMAGED = {
    "a length that is cut off": (b"\xff", 1),
    "a length of more than 32 bits": (b"\xff" * 9 + b"\1", 1),
    "a length below 0": (b"\x01" + bytes(20), 1),
    "a long length below 0": (b"\xff\xff\xff\1" * 9, 5),
    "a record that is cut off": (body()[:-1], 1),
    "a record that is longer than what is in it": (b"\x0e" + body()[1:] + b"\0", 1),
    "a record that is shorter than what is in it": (b"\x0a" + body()[1:], 1),
    "more records than are there": (body(), 2),
    "fewer records than are there": (body() * 2, 1),
    "a key beyond the record": (b"\x0c\0\0\0\x70\1\0", 1),
    "a negative number of headers": (b"\x0c\0\0\0\1\1\1", 1),
    "more headers than fit": (b"\x0c\0\0\0\1\1\x20", 1),
    "many more headers than fit": (b"\x14\0\0\0\1\1\xfe\xff\xff\xff\x0f", 1),
    "a header without a key": (b"\x16\0\0\0\1\1\4\1\4ab\1", 1),
}


@pytest.mark.parametrize("payload", DAMAGED.values(), ids=DAMAGED.keys())
def test_damage_is_refused(payload: tuple[bytes, int]) -> None:
    """
    Broken records are refused with a message, as by the reader of records.
    """
    data, count = payload
    batch = holding(data, count)
    with pytest.raises(Malformed):
        list(records(batch))
    [group] = _unchecked(batch.header, data)
    with pytest.raises(Malformed, match="first offset is 0"):
        columns_of(group, NAMES, 0, ANY)


@given(st.binary(max_size=60), st.integers(1, 4))
def test_any_bytes_are_read_or_refused(data: bytes, count: int) -> None:
    """
    Both readers agree about arbitrary bytes.
    """
    batch = holding(data, count)
    [group] = _unchecked(batch.header, data)
    try:
        offsets = [record.offset for record in records(batch)]
    except Malformed:
        with pytest.raises(Malformed):
            columns_of(group, NAMES, -ANY, ANY)
    else:
        assert columns_of(group, NAMES, -ANY, ANY)["offset"].to_pylist() == offsets


def _unchecked(header: Any, data: bytes) -> list[RecordBodies]:
    return [RecordBodies(data, [header], [0], [len(data)])]
