"""
Where records stand in a batch, and their keys: the same as what reading all of them tells.
"""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgateway.records.batch import HEADER_SIZE, Batch
from kgateway.records.compression import Codec
from kgateway.records.entries import Entry, entries, timestamp_at
from kgateway.records.payload import Payload, payload_of
from kgateway.records.record import Record, records
from kgateway.wire.malformed import Malformed
from kgateway.wire.varints import write_varint
from tests.records.handmade import body, holding
from tests.records.values import JAVA_BATCHES, JAVA_RECORDS, SAMPLE, batch_of, record_lists, with_header


def found(batch: Batch) -> list[Entry]:
    return list(entries(payload_of(batch), batch.header.records_count))


def checked(batch: Batch, rows: list[Record]) -> None:
    """
    Fail unless the entries of the batch are those of these records, one behind the other.
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
def test_entries_of_any_records(codec: Codec, rows: list[Record]) -> None:
    """
    Each record has its offset, its key, and whether it has a value, in every codec.
    """
    checked(batch_of(rows, codec=codec), rows)


@given(deltas=st.lists(st.integers(0, (1 << 31) - 1), min_size=1, max_size=4), key=st.none() | st.binary(max_size=3))
def test_offsets_and_lengths_of_any_size(deltas: list[int], key: bytes | None) -> None:
    """
    What compaction left gaps between, as far as an offset can be from its batch; and records that need long lengths.
    """
    rows = [body(delta, key, [(b"h", bytes(200))] * (delta % 2)) for delta in deltas]
    batch = holding(b"".join(rows), len(rows))
    assert [(delta, key) for _, _, delta, key, _ in found(batch)] == [(delta, key) for delta in deltas]
    assert [end - start for start, end, *_ in found(batch)] == [len(row) for row in rows]


@pytest.mark.parametrize("timestamp", [0, 63, 64, 8_191, 8_192, -64, -65, 1 << 40, -(1 << 62), (1 << 63) - 1])
def test_timestamps_of_any_length_are_passed_over(timestamp: int) -> None:
    """
    What stands behind a timestamp is found, however many bytes it has.
    """
    rows = [Record(0, 0, b"a", b"1"), Record(1, timestamp, b"b", None)]
    checked(batch_of(rows), rows)


@pytest.mark.parametrize("codec", Codec)
def test_entries_of_java_batches(codec: Codec) -> None:
    """
    What Kafka's producer has written is read.
    """
    batch = holding(JAVA_BATCHES[codec][HEADER_SIZE:], len(JAVA_RECORDS))
    data = memoryview(bytes(HEADER_SIZE) + JAVA_BATCHES[codec][HEADER_SIZE:])
    checked(with_header(batch._replace(data=data), attributes=int(codec)), JAVA_RECORDS)


def test_empty_keys_are_keys() -> None:
    """
    A key without bytes is not the same as none, and so it is with values.
    """
    batch = batch_of([Record(0, 0, b"", b""), Record(1, 0, None, None)])
    assert [(key, has_value) for *_, key, has_value in found(batch)] == [(b"", True), (None, False)]


@pytest.mark.parametrize("null", [b"\1", b"\3", b"\x7f"])
def test_any_negative_size_is_null(null: bytes) -> None:
    """
    Kafka takes any for a key or a value that is not there.
    """
    record = b"\x0c\0\0\0" + null + null + b"\0"
    assert [row[3:] for row in entries(Payload(record, 0), 1)] == [(None, False)]


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.ZSTD])
def test_count_is_what_is_there(codec: Codec) -> None:
    """
    Neither fewer records than declared nor more, nor a number that is none.
    """
    batch = batch_of(SAMPLE, codec=codec)
    for count in (-1, 0, 3, 5, (1 << 31) - 1):
        with pytest.raises(Malformed):
            found(with_header(batch, records_count=count))


def test_no_records_at_all() -> None:
    """
    A batch may have none.
    """
    assert found(batch_of([])) == []


@pytest.mark.parametrize("codec", Codec)
def test_cut_anywhere(codec: Codec) -> None:
    """
    Whatever is missing at the end is noticed.
    """
    batch = batch_of(SAMPLE, codec=codec)
    for end in range(HEADER_SIZE, len(batch.data)):
        with pytest.raises(Malformed):
            found(batch._replace(data=batch.data[:end]))


@pytest.mark.parametrize("number", [5, 6, 7])
def test_unknown_codecs(number: int) -> None:
    """
    A codec that Kafka has not is malformed.
    """
    with pytest.raises(Malformed, match="is not a valid Codec"):
        found(with_header(batch_of(SAMPLE), attributes=number))


def test_limit_on_what_is_decompressed() -> None:
    """
    No more is decompressed than was allowed.
    """
    batch = batch_of(SAMPLE, codec=Codec.ZSTD)
    size = len(payload_of(batch).data)
    assert len(payload_of(batch, size).data) == size
    with pytest.raises(Malformed, match="bytes come out"):
        payload_of(batch, size - 1)


def test_a_record_longer_than_it_says() -> None:
    """
    The key of a record ends within the record, and the value begins there.
    """
    first = body(0, b"k" * 20)
    for length in range(len(first) - 1):
        head = bytearray()
        write_varint(head, length)
        with pytest.raises(Malformed):
            list(entries(Payload(bytes(head) + first[1:] + body(1, b"k"), 0), 2))


def test_a_record_without_a_place_for_its_value() -> None:
    """
    A record that ends with its key is none, though another one follows that could be read.
    """
    with pytest.raises(Malformed):
        list(entries(Payload(b"\x0a\0\0\0\2k" + body(1, b"k"), 0), 2))


NO_VALUE = b"\1\0"  # of a record that ends so, without headers


@pytest.mark.parametrize(
    "wrong",
    [
        b"\x0d\0\0\0\1" + NO_VALUE,  # a negative length
        b"\x0c\0\0\1\1" + NO_VALUE,  # a negative offset delta
        b"\x0c\0\0\0\xff\xff\xff\xff\x7f" + NO_VALUE,  # a key of which no number tells the size
        b"\x16\0\0\0\xfe\xff\xff\xff\x0f\0" + NO_VALUE,  # a key of two gigabytes
        b"\x16\0\0\x80\x80\x80\x80\x80\x80\0\1" + NO_VALUE,  # an offset of too many bytes
        b"\xff\xff\xff\xff\xff\xff\0",
        b"\x0c\0" + b"\xff" * 20,
        b"",
    ],
)
def test_what_no_record_can_be(wrong: bytes) -> None:
    """
    Numbers that cannot be are malformed.
    """
    with pytest.raises(Malformed, match="no record can be read here"):
        list(entries(Payload(wrong, 0), 1))


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.ZSTD])
def test_mutations(codec: Codec) -> None:
    """
    Whatever was changed, entries come out, or Malformed; and where all of the records can be read, so can the entries,
    with the same keys.
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
        if whole and all(record.offset >= 0 for record in whole):  # one before its batch cannot be in a log
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
def test_timestamps_of_any_records(codec: Codec, rows: list[Record]) -> None:
    """
    Where a record starts is enough to tell its timestamp.
    """
    batch = batch_of(rows, codec=codec)
    data, base = payload_of(batch).data, batch.header.base_timestamp
    assert [base + timestamp_at(data, start)[0] for start, *_ in found(batch)] == [row.timestamp for row in rows]


def test_a_timestamp_that_cannot_be() -> None:
    """
    A timestamp of too many bytes is malformed.
    """
    data = b"\x20\0" + b"\xff" * 10 + b"\0\0\1\1\0"
    with pytest.raises(Malformed, match="goes on beyond 64 bits"):
        timestamp_at(data, 0)
