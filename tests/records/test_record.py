"""
Records taken out of batches: whole ones, and all the ways in which bytes can lie.
"""

import random
import time
import tracemalloc
from collections.abc import Iterator

import pytest
from hypothesis import given

from kgateway.records.batch import HEADER_SIZE, Batch, read_batch
from kgateway.records.compression import Codec, compress
from kgateway.records.record import Header, Record, records
from kgateway.wire.malformed import Malformed, Place
from kgateway.wire.varints import write_varint
from tests.records.values import JAVA_BATCHES, JAVA_RECORDS, SAMPLE, batch_of, record_lists, with_header


@pytest.mark.parametrize("codec", Codec)
def test_java_batches_are_read(codec: Codec) -> None:
    """
    The records of the Java producer come out as they went in, with every codec.
    """
    assert list(records(read_batch(b"__" + JAVA_BATCHES[codec], 2))) == JAVA_RECORDS


@pytest.mark.parametrize("codec", Codec)
@given(rows=record_lists())
def test_records_come_back(codec: Codec, rows: list[Record]) -> None:
    """
    A batch gives the records it was built of.
    """
    assert list(records(batch_of(rows, codec=codec))) == rows


def test_offsets_count_from_the_base() -> None:
    """
    Offsets are those of the log, also where compaction has left gaps.
    """
    batch = with_header(batch_of(SAMPLE), base_offset=1 << 40)
    assert [record.offset for record in records(batch)] == [(1 << 40) + n for n in range(4)]
    kept = _body(offset_delta=3) + _body(offset_delta=9)
    sparse = with_header(_holding(kept, 2), base_offset=100, last_offset_delta=12)
    assert [record.offset for record in records(sparse)] == [103, 109]


def test_log_append_time_is_that_of_all() -> None:
    """
    With LogAppendTime every record has the batch's max timestamp.
    """
    batch = batch_of(SAMPLE, log_append_time_ms=7_777)
    assert [record.timestamp for record in records(batch)] == [7_777] * 4


def test_delete_horizon_is_still_the_base_of_timestamps() -> None:
    """
    Timestamps count from the base timestamp also where compaction keeps its horizon there.
    """
    batch = with_header(batch_of(SAMPLE), attributes=0x40, base_timestamp=500)
    assert [record.timestamp for record in records(batch)] == [500, 490, 4_500, 1_500]


@pytest.mark.parametrize("codec", Codec)
def test_batch_without_records_is_read(codec: Codec) -> None:
    """
    A batch that compaction has emptied has no records, and that is no error.
    """
    assert list(records(with_header(batch_of([]), attributes=int(codec)))) == []


def test_broken_header_keys_survive() -> None:
    """
    A header key that is not UTF-8 comes back byte for byte from what it is read as.
    """
    broken = b"caf\xe9 \xff\xed\xa0\x80\xc3\xa9"
    (record,) = records(_holding(_body(headers=[(broken, b"v")]), 1))
    ((key, value),) = record.headers
    assert (key[:3], key[-1], value) == ("caf", "é", b"v")
    assert key.encode(errors="surrogateescape") == broken
    assert list(records(batch_of([record]))) == [record]


def test_records_come_lazily() -> None:
    """
    Records before the damage come out before the damage does.
    """
    found = records(_holding(_body() + b"\x02\0", 2))
    assert next(found) == Record(0, 0, None, None)
    with pytest.raises(Malformed):
        next(found)


@pytest.mark.parametrize("codec", [codec for codec in Codec if codec])
def test_limit_on_what_is_decompressed(codec: Codec) -> None:
    """
    A batch that decompresses to more than the limit is malformed; at the limit it is read.
    """
    size = len(batch_of(SAMPLE).data) - HEADER_SIZE
    batch = batch_of(SAMPLE, codec=codec)
    assert list(records(batch, size)) == SAMPLE
    with pytest.raises(Malformed, match=rf"RecordBatch v2: records at byte 61: more than {size - 1} bytes come out"):
        list(records(batch, size - 1))


@pytest.mark.parametrize("number", [5, 6, 7])
def test_unknown_codec_is_malformed(number: int) -> None:
    """
    A codec that Kafka has not is malformed.
    """
    with pytest.raises(Malformed, match=f"records at byte 61: {number} is not a valid Codec"):
        list(records(with_header(batch_of(SAMPLE), attributes=number)))


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.ZSTD])
def test_count_must_be_what_is_there(codec: Codec) -> None:
    """
    Neither more records than declared nor fewer, nor a number that is none.
    """
    batch = batch_of(SAMPLE, codec=codec)
    for count, reason in {3: "bytes are left over", 5: "cut off", 0: "bytes are left over", -1: "-1 records"}.items():
        with pytest.raises(Malformed, match=reason):
            list(records(with_header(batch, records_count=count)))
    with pytest.raises(Malformed, match="cut off"):
        list(records(with_header(batch, records_count=(1 << 31) - 1)))


@pytest.mark.parametrize("difference", [-1, 1, -(1 << 31), 1 << 20])
def test_length_must_be_that_of_the_record(difference: int) -> None:
    """
    A record is as long as it says.
    """
    body = _body(key=b"k")[1:]
    data = bytearray()
    write_varint(data, len(body) + difference)
    with pytest.raises(Malformed, match=rf"records at byte 61: a record of {len(body)} bytes is declared to have"):
        list(records(_holding(bytes(data) + body + _body(), 2)))


def test_malformed_names_the_field() -> None:
    """
    What is wrong inside a record is named, with its position.
    """
    with pytest.raises(Malformed) as e:
        list(records(_holding(_body()[:4] + b"\x10abc", 1)))
    assert (e.value.place, e.value.position) == (Place("RecordBody", 2, "key"), HEADER_SIZE + 5)
    assert e.value.reason == "8 declared, with 3 bytes left"


LONG = b"\xfe\xff\xff\xff\x0f"  # 2,147,483,647 as a varint


@pytest.mark.parametrize("head", [b"\0\0\0", b"\0\0\0\1", b"\0\0\0\1\1", b"\0\0\0\1\1\2", b"\0\0\0\1\1\2\0"])
@pytest.mark.parametrize("codec", [Codec.NONE, Codec.ZSTD])
def test_declared_lengths_allocate_nothing(head: bytes, codec: Codec) -> None:
    """
    A key, value, header count, header key or header value of two gigabytes is refused before memory is taken for it.
    """
    batch = _holding(b"\x7e" + head + LONG + bytes(50), 1, codec)
    tracemalloc.start()
    try:
        with pytest.raises(Malformed):
            list(records(batch))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 1 << 20


def _body(offset_delta: int = 0, key: bytes | None = None, headers: list[tuple[bytes, bytes]] | None = None) -> bytes:
    """
    A record by hand: the wire form that this package must read, spelled out.
    """
    body = bytearray(b"\0\0")
    write_varint(body, offset_delta)
    for blob in (key, None):
        write_varint(body, -1 if blob is None else len(blob))
        body += blob or b""
    write_varint(body, len(headers or []))
    for part in (part for header in headers or [] for part in header):
        write_varint(body, len(part))
        body += part
    length = bytearray()
    write_varint(length, len(body))
    return bytes(length + body)


def _holding(payload: bytes, count: int, codec: Codec = Codec.NONE) -> Batch:
    """
    A batch of this payload, which may be anything.
    """
    compressed = compress(codec, payload)
    header = with_header(
        batch_of([]), records_count=count, base_timestamp=0, attributes=codec, batch_length=49 + len(compressed)
    ).header
    return Batch(header, memoryview(bytes(HEADER_SIZE) + compressed))


def test_a_body_by_hand_is_what_is_built() -> None:
    """
    The records spelled out in these tests have the form that the builder gives them.
    """
    rows = [Record(0, 0, b"key", None, (Header("h", b"v"),))]
    assert batch_of(rows).data[HEADER_SIZE:] == _body(key=b"key", headers=[(b"h", b"v")])


def _outcome(batch: Batch) -> list[Record] | None:
    """
    The records, or nothing where the batch is malformed; anything else escapes, and so does a second of work.
    """
    began = time.monotonic()
    try:
        return list(records(batch, 1 << 20))
    except Malformed:
        return None
    finally:
        assert time.monotonic() - began < 1


@pytest.mark.parametrize("codec", Codec)
def test_records_cut_anywhere_are_malformed(codec: Codec) -> None:
    """
    Whatever is missing at the end of a batch, it is noticed.
    """
    batch = batch_of(SAMPLE, codec=codec)
    for end in range(HEADER_SIZE, len(batch.data)):
        assert _outcome(batch._replace(data=batch.data[:end])) is None, end


def _mutants(batch: Batch, count: int, rng: random.Random) -> Iterator[Batch]:
    """
    The batch with a bit or two flipped, or an extreme number written over a byte; often in its header.
    """
    extremes = [b"\0", b"\x7f", b"\xff", LONG, b"\xff" * 10 + b"\1", b"\xff" * 9 + b"\1", b"\x80" * 5, b"\x01"]
    for _ in range(count):
        data = bytearray(batch.data)
        for _ in range(rng.randint(1, 2)):
            at = rng.randrange(17, len(data))  # before that it would be no batch of this size
            if rng.random() < 0.7:
                data[at] ^= 1 << rng.randrange(8)
            else:
                extreme = rng.choice(extremes)
                data[at : at + len(extreme)] = extreme[: len(data) - at]
        yield read_batch(bytes(data))


@pytest.mark.parametrize("codec", Codec)
def test_damaged_records_are_read_or_malformed(codec: Codec) -> None:
    """
    Of thousands of damaged batches each gives records, or is malformed, and nothing else happens.
    """
    rng = random.Random(codec)
    read = malformed = 0
    for rows in (SAMPLE, JAVA_RECORDS, SAMPLE[:1]):
        for mutant in _mutants(batch_of(rows, codec=codec), 1_600, rng):
            if _outcome(mutant) is None:
                malformed += 1
            else:
                read += 1
    assert read > 100
    assert malformed > 500


@pytest.mark.parametrize("codec", [codec for codec in Codec if codec])
def test_damaged_records_inside_sound_compression(codec: Codec) -> None:
    """
    Damage that was compressed along with the records ends the same way.
    """
    rng = random.Random(codec)
    for mutant in _mutants(batch_of(SAMPLE), 800, rng):
        count = mutant.header.records_count
        _outcome(_holding(bytes(mutant.data[HEADER_SIZE:]), count, codec))
