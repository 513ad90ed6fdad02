"""
Records of damaged or lying batches are read or malformed, and nothing else happens.
"""

import random
import time
import tracemalloc
from collections.abc import Iterator
from dataclasses import replace

import pytest

from kgateway.records.batch import HEADER_SIZE, Batch, read_batch
from kgateway.records.compression import Codec
from kgateway.records.record import Record, records
from kgateway.wire.errors import Malformed, MessageField
from kgateway.wire.varints import write_varint
from tests.records.handmade_batches import body, holding
from tests.records.values import JAVA_RECORDS, SAMPLE, batch_of, with_header


def test_records_are_read_lazily() -> None:
    """
    Those before damage are returned before the error.
    """
    found = records(holding(body() + b"\x02\0", 2))
    assert next(found) == Record(0, 0, None, None)
    with pytest.raises(Malformed):
        next(found)


@pytest.mark.parametrize("codec", [codec for codec in Codec if codec])
def test_decompression_is_limited(codec: Codec) -> None:
    """
    A batch that decompresses to more than the limit is malformed; at the limit it is read.
    """
    size = len(batch_of(SAMPLE).data) - HEADER_SIZE
    batch = batch_of(SAMPLE, codec=codec)
    assert list(records(batch, size)) == SAMPLE
    with pytest.raises(
        Malformed, match=rf"RecordBatch v2: records at byte 61: it decompresses to more than {size - 1} bytes"
    ):
        list(records(batch, size - 1))


@pytest.mark.parametrize("number", [5, 6, 7])
def test_unknown_codec_is_malformed(number: int) -> None:
    with pytest.raises(Malformed, match=f"records at byte 61: {number} is not a valid Codec"):
        list(records(with_header(batch_of(SAMPLE), attributes=number)))


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.ZSTD])
def test_the_count_must_be_right(codec: Codec) -> None:
    """
    Fewer or more records than declared, or a negative number, are malformed.
    """
    batch = batch_of(SAMPLE, codec=codec)
    for count, reason in {3: "bytes are left over", 5: "cut off", 0: "bytes are left over", -1: "-1 records"}.items():
        with pytest.raises(Malformed, match=reason):
            list(records(with_header(batch, records_count=count)))
    with pytest.raises(Malformed, match="cut off"):
        list(records(with_header(batch, records_count=(1 << 31) - 1)))


@pytest.mark.parametrize("difference", [-1, 1, -(1 << 31), 1 << 20])
def test_the_length_must_be_that_of_the_record(difference: int) -> None:
    rest = body(key=b"k")[1:]
    data = bytearray()
    write_varint(data, len(rest) + difference)
    with pytest.raises(Malformed, match=rf"records at byte 61: a record of {len(rest)} bytes declares a size of"):
        list(records(holding(bytes(data) + rest + body(), 2)))


def test_errors_name_the_field() -> None:
    """
    What is wrong inside a record is named with its position.
    """
    with pytest.raises(Malformed) as e:
        list(records(holding(body()[:4] + b"\x10abc", 1)))
    assert (e.value.field, e.value.position) == (MessageField("RecordBody", 2, "key"), HEADER_SIZE + 5)
    assert e.value.reason == "8 declared, with 3 bytes left"


LONG = b"\xfe\xff\xff\xff\x0f"  # 2,147,483,647 as a varint


@pytest.mark.parametrize("head", [b"\0\0\0", b"\0\0\0\1", b"\0\0\0\1\1", b"\0\0\0\1\1\2", b"\0\0\0\1\1\2\0"])
@pytest.mark.parametrize("codec", [Codec.NONE, Codec.ZSTD])
def test_declared_lengths_allocate_nothing(head: bytes, codec: Codec) -> None:
    """
    Two gigabytes of key, value, header count, header key or header value are refused before memory is allocated.
    """
    batch = holding(b"\x7e" + head + LONG + bytes(50), 1, codec)
    tracemalloc.start()
    try:
        with pytest.raises(Malformed):
            list(records(batch))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 1 << 20


def _outcome(batch: Batch) -> list[Record] | None:
    """
    The records, or None for a malformed batch; other exceptions escape, and so does a second of work.
    """
    began = time.process_time()
    try:
        return list(records(batch, 1 << 20))
    except Malformed:
        return None
    finally:
        assert time.process_time() - began < 1


@pytest.mark.parametrize("codec", Codec)
def test_truncation_anywhere_is_malformed(codec: Codec) -> None:
    batch = batch_of(SAMPLE, codec=codec)
    for end in range(HEADER_SIZE, len(batch.data)):
        assert _outcome(replace(batch, data=batch.data[:end])) is None, end


def _mutants(batch: Batch, count: int, rng: random.Random) -> Iterator[Batch]:
    """
    The batch with one or two bits flipped, or an extreme number over a byte; often in its header.
    """
    extremes = [b"\0", b"\x7f", b"\xff", LONG, b"\xff" * 10 + b"\1", b"\xff" * 9 + b"\1", b"\x80" * 5, b"\x01"]
    for _ in range(count):
        data = bytearray(batch.data)
        for _ in range(rng.randint(1, 2)):
            at = rng.randrange(17, len(data))  # a shorter length would make it another batch
            if rng.random() < 0.7:
                data[at] ^= 1 << rng.randrange(8)
            else:
                extreme = rng.choice(extremes)
                data[at : at + len(extreme)] = extreme[: len(data) - at]
        yield read_batch(bytes(data))


@pytest.mark.parametrize("codec", Codec)
def test_damaged_records_are_read_or_malformed(codec: Codec) -> None:
    """
    Thousands of damaged batches give records or are malformed.
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
    Damage that was compressed with the records has the same outcome.
    """
    rng = random.Random(codec)
    for mutant in _mutants(batch_of(SAMPLE), 800, rng):
        count = mutant.header.records_count
        _outcome(holding(bytes(mutant.data[HEADER_SIZE:]), count, codec))
