"""
Positions and keys of records in a batch are found without reading the records.
"""

import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgateway.records.batch import HEADER_SIZE, Batch
from kgateway.records.compression import Codec
from kgateway.records.record import Entry, Payload, Record, entries, payload_of, records, timestamp_at
from kgateway.wire.errors import Malformed
from kgateway.wire.varints import write_varint
from tests.records.handmade_batches import body, holding
from tests.records.values import JAVA_BATCHES, JAVA_RECORDS, SAMPLE, batch_of, record_lists, with_header


def found(batch: Batch) -> list[Entry]:
    return list(entries(payload_of(batch), batch.header.records_count))


def checked(batch: Batch, rows: list[Record]) -> None:
    """
    Check that the entries of the batch are those of these records, in order.
    """
    payload, here = payload_of(batch), found(batch)
    assert [(base_delta, key, has_value) for _, _, base_delta, key, has_value in here] == [
        (row.offset, row.key, row.value is not None) for row in rows
    ]
    places = [payload.start, *(end for _, end, *_ in here)]
    assert [start for start, *_ in here] == places[:-1]
    assert places[-1] == len(payload.data)


@pytest.mark.parametrize("codec", Codec)
@given(rows=record_lists())
def test_entries_match_the_records(codec: Codec, rows: list[Record]) -> None:
    """
    Each has its offset, its key, and whether it has a value, in every codec.
    """
    checked(batch_of(rows, codec=codec), rows)


@given(deltas=st.lists(st.integers(0, (1 << 31) - 1), min_size=1, max_size=4), key=st.none() | st.binary(max_size=3))
def test_long_offsets_and_lengths(deltas: list[int], key: bytes | None) -> None:
    """
    Compaction leaves gaps up to the largest offset delta; records may need long lengths.
    """
    rows = [body(delta, key, [(b"h", bytes(200))] * (delta % 2)) for delta in deltas]
    batch = holding(b"".join(rows), len(rows))
    assert [(delta, key) for _, _, delta, key, _ in found(batch)] == [(delta, key) for delta in deltas]
    assert [end - start for start, end, *_ in found(batch)] == [len(row) for row in rows]


@pytest.mark.parametrize("timestamp", [0, 63, 64, 8_191, 8_192, -64, -65, 1 << 40, -(1 << 62), (1 << 63) - 1])
def test_timestamps_of_any_length_are_skipped(timestamp: int) -> None:
    rows = [Record(0, 0, b"a", b"1"), Record(1, timestamp, b"b", None)]
    checked(batch_of(rows), rows)


@pytest.mark.parametrize("codec", Codec)
def test_entries_of_java_batches(codec: Codec) -> None:
    batch = holding(JAVA_BATCHES[codec][HEADER_SIZE:], len(JAVA_RECORDS))
    data = memoryview(bytes(HEADER_SIZE) + JAVA_BATCHES[codec][HEADER_SIZE:])
    checked(with_header(replace(batch, data=data), attributes=int(codec)), JAVA_RECORDS)


def test_empty_keys_are_keys() -> None:
    """
    A key without bytes differs from none, and so does a value.
    """
    batch = batch_of([Record(0, 0, b"", b""), Record(1, 0, None, None)])
    assert [(key, has_value) for *_, key, has_value in found(batch)] == [(b"", True), (None, False)]


@pytest.mark.parametrize("null", [b"\1", b"\3", b"\x7f"])
def test_any_negative_size_is_null(null: bytes) -> None:
    """
    Kafka accepts any negative length for a missing key or value.
    """
    record = b"\x0c\0\0\0" + null + null + b"\0"
    assert [row[3:] for row in entries(Payload(record, 0), 1)] == [(None, False)]


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.ZSTD])
def test_the_count_must_be_right(codec: Codec) -> None:
    """
    Fewer or more records than declared, or a negative number, are malformed.
    """
    batch = batch_of(SAMPLE, codec=codec)
    for count in (-1, 0, 3, 5, (1 << 31) - 1):
        with pytest.raises(Malformed):
            found(with_header(batch, records_count=count))


def test_a_batch_may_be_empty() -> None:
    assert found(batch_of([])) == []


@pytest.mark.parametrize("codec", Codec)
def test_truncation_anywhere_is_malformed(codec: Codec) -> None:
    batch = batch_of(SAMPLE, codec=codec)
    for end in range(HEADER_SIZE, len(batch.data)):
        with pytest.raises(Malformed):
            found(replace(batch, data=batch.data[:end]))


@pytest.mark.parametrize("number", [5, 6, 7])
def test_unknown_codecs_are_malformed(number: int) -> None:
    with pytest.raises(Malformed, match="is not a valid Codec"):
        found(with_header(batch_of(SAMPLE), attributes=number))


def test_decompression_is_limited() -> None:
    batch = batch_of(SAMPLE, codec=Codec.ZSTD)
    size = len(payload_of(batch).data)
    assert len(payload_of(batch, size).data) == size
    with pytest.raises(Malformed, match="it decompresses to more than"):
        payload_of(batch, size - 1)


def test_a_key_beyond_its_record_is_malformed() -> None:
    """
    The value must begin within the record, too.
    """
    first = body(0, b"k" * 20)
    for length in range(len(first) - 1):
        head = bytearray()
        write_varint(head, length)
        with pytest.raises(Malformed):
            list(entries(Payload(bytes(head) + first[1:] + body(1, b"k"), 0), 2))


def test_a_record_that_ends_with_its_key_is_malformed() -> None:
    """
    A readable record may follow it.
    """
    with pytest.raises(Malformed):
        list(entries(Payload(b"\x0a\0\0\0\2k" + body(1, b"k"), 0), 2))


NO_VALUE = b"\1\0"  # a record that ends so, without headers


@pytest.mark.parametrize(
    "wrong",
    [
        b"\x0d\0\0\0\1" + NO_VALUE,  # a negative length
        b"\x0c\0\0\1\1" + NO_VALUE,  # a negative offset delta
        b"\x0c\0\0\0\xff\xff\xff\xff\x7f" + NO_VALUE,  # a key without a length
        b"\x16\0\0\0\xfe\xff\xff\xff\x0f\0" + NO_VALUE,  # a key of two gigabytes
        b"\x16\0\0\x80\x80\x80\x80\x80\x80\0\1" + NO_VALUE,  # an offset of too many bytes
        b"\xff\xff\xff\xff\xff\xff\0",
        b"\x0c\0" + b"\xff" * 20,
        b"",
    ],
)
def test_impossible_numbers_are_malformed(wrong: bytes) -> None:
    with pytest.raises(Malformed, match="cannot read a record here"):
        list(entries(Payload(wrong, 0), 1))


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.ZSTD])
def test_mutated_batches_have_entries_or_are_malformed(codec: Codec) -> None:
    """
    If all records can be read, so can the entries, with the same keys.
    """
    rng = random.Random(5)
    rows = [record for record in SAMPLE if len(record.value or b"") < 100]
    original = payload_of(batch_of(rows)).data[HEADER_SIZE:]
    read = refused = 0
    for _ in range(2_000):
        data = bytearray(original)
        for _ in range(rng.randint(1, 2)):
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        batch = holding(bytes(data), len(rows), codec)
        keys, whole = _keys(batch), _whole(batch)
        read += keys is not None
        refused += keys is None
        if whole and all(record.offset >= 0 for record in whole):  # an offset below the base cannot be in a log
            assert keys == [record.key for record in whole]
    assert read > 500
    assert refused > 200


def _keys(batch: Batch) -> list[bytes | None] | None:
    try:
        return [key for *_, key, _ in found(batch)]
    except Malformed:
        return None


def _whole(batch: Batch) -> list[Record] | None:
    try:
        return list(records(batch))
    except Malformed:
        return None


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.ZSTD])
@given(rows=record_lists(min_size=1))
def test_timestamps_are_read_from_record_positions(codec: Codec, rows: list[Record]) -> None:
    batch = batch_of(rows, codec=codec)
    data, base = payload_of(batch).data, batch.header.base_timestamp
    assert [base + timestamp_at(data, start)[0] for start, *_ in found(batch)] == [row.timestamp for row in rows]


def test_impossible_timestamps_are_malformed() -> None:
    """
    They have too many bytes.
    """
    data = b"\x20\0" + b"\xff" * 10 + b"\0\0\1\1\0"
    with pytest.raises(Malformed, match="extends beyond 64 bits"):
        timestamp_at(data, 0)
